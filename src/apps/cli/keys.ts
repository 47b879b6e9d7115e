/** `spillway keys create|list|revoke`: tenants' keys, of which only the hash is stored. */
import { join } from 'node:path';
import { createKey, readKeysFile, revokeKey } from '../../adapters/config-file/index.ts';
import { CliError, DONE, USAGE } from './exit.ts';
import { say, sayJson, table, warn } from './output.ts';
import { reading, refuseIssues } from './read-or-refuse.ts';
import { defaultStateFolder, type Environment } from './state.ts';

export interface KeysOptions {
  readonly file?: string;
  readonly config?: string;
  readonly state?: string;
  readonly json?: boolean;
}

export interface KeyCreateOptions extends KeysOptions {
  readonly tenant: string;
  readonly id?: string;
  readonly classCeiling?: string;
}

/** `--file`, else the file that the configuration names, else the one in the state folder. */
async function keysFile(options: KeysOptions, environment: Environment): Promise<string> {
  if (options.file !== undefined) return options.file;
  const folder = options.state ?? defaultStateFolder(environment);
  if (options.config === undefined) return join(folder, 'keys.json');
  const source = { file: options.config, environment, fallbackFolder: folder };
  const read = (await reading(source))();
  // A configuration that listens beyond this machine has an issue until its first key is there.
  if (read.keysFile !== '') return read.keysFile;
  if (read.kind === 'issues') refuseIssues(read.issues, { json: options.json === true });
  throw new CliError(`Expected keysFile or state.folder in ${options.config}; neither is there`, USAGE);
}

export async function keysCreate(options: KeyCreateOptions, environment: Environment): Promise<number> {
  const path = await keysFile(options, environment);
  const { tenant, id, classCeiling } = options;
  const created = createKey(path, {
    tenant,
    createdAt: new Date().toISOString(),
    ...(id === undefined ? {} : { id }),
    ...(classCeiling === undefined ? {} : { classCeiling }),
  });
  if (created.kind === 'refused')
    throw new CliError(`Cannot create a key in ${path}: ${created.rule}`, USAGE);
  if (options.json === true) sayJson({ id: created.key.id, tenant, secret: created.secret, file: path });
  else {
    say(created.secret);
    warn(
      `Key ${created.key.id} of tenant ${tenant} is in ${path} as a hash; the secret above is shown this once.`,
    );
    warn('A running gateway with keys takes it at once; one that started without any key needs a restart.');
  }
  return DONE;
}

export async function keysList(options: KeysOptions, environment: Environment): Promise<number> {
  const path = await keysFile(options, environment);
  const read = readKeysFile(path);
  if (read.kind === 'refused') throw new CliError(`Cannot read ${path}: ${read.rule}`);
  const rows = read.keys.map(({ sha256: _sha256, ...key }) => key);
  if (options.json === true) sayJson({ file: path, keys: rows });
  else if (rows.length === 0) say(`No keys in ${path}. Create one: spillway keys create --tenant NAME`);
  else
    say(
      table(
        ['KEY', 'TENANT', 'CREATED', 'CEILING'],
        rows.map((key) => [key.id, key.tenant, key.createdAt, key.classCeiling ?? '']),
      ),
    );
  return DONE;
}

export async function keysRevoke(
  id: string,
  options: KeysOptions,
  environment: Environment,
): Promise<number> {
  const path = await keysFile(options, environment);
  const revoked = revokeKey(path, id);
  if (revoked.kind === 'refused') throw new CliError(`Cannot change ${path}: ${revoked.rule}`);
  if (revoked.kind === 'unknown')
    throw new CliError(`There is no key ${id} in ${path}; see spillway keys list`);
  if (options.json === true) sayJson({ id, revoked: true, file: path });
  else say(`Key ${id} is revoked; a running gateway refuses it from now on.`);
  return DONE;
}
