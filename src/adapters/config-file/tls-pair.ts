/** Whether two files are a certificate and its private key. Checked before anything listens, and by `spillway check`. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface TlsPairIssue {
  readonly part: 'cert' | 'key';
  /** As a rule of the configuration; never holds a byte of either file. */
  readonly rule: string;
}

/** Undefined when a server can use the two. A chain is judged by its first certificate. */
export function tlsPairIssue(files: {
  readonly cert: string;
  readonly key: string;
}): TlsPairIssue | undefined {
  const cert = readPart(files.cert, (pem) => new X509Certificate(pem));
  if (cert === 'unreadable') return { part: 'cert', rule: 'Expected a readable file' };
  if (cert === undefined) return { part: 'cert', rule: 'Expected a certificate in PEM form' };
  const key = readPart(files.key, (pem): KeyObject => createPrivateKey(pem));
  if (key === 'unreadable') return { part: 'key', rule: 'Expected a readable file' };
  if (key === undefined)
    return { part: 'key', rule: 'Expected a private key in PEM form, without a passphrase' };
  if (!cert.checkPrivateKey(key)) return { part: 'key', rule: 'Expected the private key of the certificate' };
  return undefined;
}

function readPart<T>(file: string, parse: (pem: string) => T): T | 'unreadable' | undefined {
  let pem: string;
  try {
    pem = readFileSync(file, 'latin1');
  } catch {
    return 'unreadable';
  }
  if (!pem.includes('-----BEGIN ')) return undefined;
  try {
    return parse(pem);
  } catch {
    return undefined;
  }
}
