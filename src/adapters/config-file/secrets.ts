/** Reads secrets from where the configuration points to. Values go into `Secret`s and nowhere else. */
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConfigInput, KeyConfig, NodeInput, Secret, TenantInput } from '../../core/config/index.ts';
import { sha256Hex } from './digest.ts';
import type { FileKey, FileNode, FileTenant, FileTracing, SecretRef } from './file-types.ts';
import { SECRET_RULE } from './schema.ts';

/** A key, a token or a certificate is smaller; a larger file is a mistake. */
const SECRET_BYTES_MAX = 64 * 1024;

export interface SecretReader {
  /** Undefined after a problem, which was reported. */
  read(ref: SecretRef, path: readonly (string | number)[]): Secret | undefined;
  /** An absolute path of a readable file; reported when it is not. */
  filePath(path: string, at: readonly (string | number)[]): string;
  /** Every file that was read: to be watched. */
  readonly files: readonly string[];
}

export interface SecretReaderOptions {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Never receives a secret's value. */
  report(path: readonly (string | number)[], rule: string, received?: string): void;
}

export function createSecretReader({ folder, environment, report }: SecretReaderOptions): SecretReader {
  const files: string[] = [];

  function fromEnvironment(name: string, path: readonly (string | number)[]): Secret | undefined {
    const value = environment[name];
    if (value !== undefined && value !== '') return { value, origin: `env ${name}` };
    report([...path, 'env'], 'Expected an environment variable that is set and not empty', name);
    return undefined;
  }

  function fromFile(name: string, path: readonly (string | number)[]): Secret | undefined {
    const absolute = resolve(folder, name);
    files.push(absolute);
    try {
      if (statSync(absolute).size > SECRET_BYTES_MAX) {
        report([...path, 'file'], `Expected a file of at most ${SECRET_BYTES_MAX} bytes`, name);
        return undefined;
      }
      const value = readFileSync(absolute, 'utf8').trim();
      if (value !== '') return { value, origin: `file ${name}` };
      report([...path, 'file'], 'Expected a file that is not empty', name);
    } catch (error) {
      report([...path, 'file'], `Expected a readable file (${codeOf(error)})`, name);
    }
    return undefined;
  }

  return {
    files,
    read(ref, path) {
      if ((ref.env === undefined) === (ref.file === undefined)) {
        report(path, SECRET_RULE);
        return undefined;
      }
      return ref.env === undefined ? fromFile(ref.file ?? '', path) : fromEnvironment(ref.env, path);
    },
    filePath(path, at) {
      const absolute = resolve(folder, path);
      files.push(absolute);
      try {
        readFileSync(absolute);
      } catch (error) {
        report(at, `Expected a readable file (${codeOf(error)})`, path);
      }
      return absolute;
    },
  };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
}

/** Keys are hashed as soon as they are read. */
export function readTenant(tenant: FileTenant, index: number, secrets: SecretReader): TenantInput {
  const { keys, ...rest } = tenant;
  if (keys === undefined) return rest;
  const hashed = keys.map((key, j) => readKey(key, ['tenants', index, 'keys', j], secrets));
  return { ...rest, keys: hashed.filter((key) => key !== undefined) };
}

function readKey(
  key: FileKey,
  path: readonly (string | number)[],
  secrets: SecretReader,
): KeyConfig | undefined {
  if (key.sha256 !== undefined && key.env === undefined && key.file === undefined) {
    return { id: key.id, sha256: key.sha256 };
  }
  const { env, file } = key;
  const ref = { ...(env === undefined ? {} : { env }), ...(file === undefined ? {} : { file }) };
  const secret = secrets.read(key.sha256 === undefined ? ref : {}, path);
  return secret === undefined ? undefined : { id: key.id, sha256: sha256Hex(secret.value) };
}

export function readNode(node: FileNode, index: number, secrets: SecretReader): NodeInput {
  const { models, headers, key, tls, ...rest } = node;
  const at = ['nodes', index] as const;
  const secret = key === undefined ? undefined : secrets.read(key, [...at, 'key']);
  const paths = Object.entries(tls ?? {}).map(([name, path]): [string, string] => [
    name,
    secrets.filePath(path, [...at, 'tls', name]),
  ]);
  return {
    ...rest,
    ...(models === undefined
      ? {}
      : { models: models.map((model) => (typeof model === 'string' ? { model } : model)) }),
    ...(headers === undefined ? {} : { headers: readHeaders(headers, at, secrets) }),
    ...(secret === undefined ? {} : { key: secret }),
    ...(tls === undefined ? {} : { tls: Object.fromEntries(paths) }),
  };
}

export function readTracing(
  { headers, ...rest }: FileTracing,
  secrets: SecretReader,
): NonNullable<ConfigInput['tracing']> {
  return headers === undefined ? rest : { ...rest, headers: readHeaders(headers, ['tracing'], secrets) };
}

function readHeaders(
  headers: Readonly<Record<string, string | SecretRef>>,
  at: readonly (string | number)[],
  secrets: SecretReader,
): Readonly<Record<string, string>> {
  const values = Object.entries(headers).map(([name, value]): [string, string] => {
    const read = typeof value === 'string' ? value : secrets.read(value, [...at, 'headers', name])?.value;
    return [name, read ?? ''];
  });
  return Object.fromEntries(values);
}
