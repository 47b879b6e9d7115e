/** Self-signed certificates for tests over TLS, made by the openssl command. One plays both sides: it is its own authority. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** Two days long, for 127.0.0.1 and localhost. */
export function makeCertificate(folder: string, name = 'server'): CertificateFiles {
  const files = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) };
  const subject = [
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=IP:127.0.0.1,DNS:localhost',
    '-days',
    '2',
  ];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const args = ['req', '-x509', ...curve, '-keyout', files.key, '-out', files.cert, ...subject];
  execFileSync('openssl', args, { stdio: 'ignore' });
  return files;
}
