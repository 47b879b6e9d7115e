/** `spillway config`: the configuration of a running gateway, its history, and changes to it. */
import {
  type ConfigDifference,
  configValues,
  type GatewayConfig,
  namesOfPath,
} from '../../core/config/index.ts';
import type { ConfigStatus, ConfigVerdict, ConfigVersion } from '../../edge/admin/config.ts';
import { AdminRefusal, type AdminOptions, askAdmin } from './admin-client.ts';
import { CliError, DONE, USAGE } from './exit.ts';
import { say, sayJson, table, terminalWidth } from './output.ts';
import type { Environment } from './state.ts';

interface Author {
  readonly why?: string;
  readonly who?: string;
}

type Done = Omit<Extract<ConfigVerdict, { kind: 'done' }>, 'kind'>;
type ConfigPage = ConfigStatus & { readonly config: GatewayConfig };

export async function configShow(
  path: string | undefined,
  options: AdminOptions & { readonly all?: boolean },
  environment: Environment,
): Promise<number> {
  const page = (await askAdmin('/config', options, environment)) as ConfigPage;
  if (options.json === true) {
    sayJson(page);
    return DONE;
  }
  const below = path === undefined ? [] : namesOf(path);
  const rows = configValues(page.config)
    .filter((one) => below.every((name, index) => one.names[index] === name))
    .map((one) => [one.path, valueText(one.value), originOf(one.path, page.origins)])
    .filter(([, , origin]) => options.all === true || origin !== 'default');
  say(`version ${page.version}${page.durable ? '' : ' (in memory: gone when the gateway ends)'}`);
  if (rows.length > 0) say(fit(['PATH', 'VALUE', 'FROM'], rows, [0, 1, 2]));
  else say('Nothing but defaults here; --all shows them.');
  if (page.needsRestart.length > 0) say(`waits for a restart: ${page.needsRestart.join(', ')}`);
  if (page.dormant.length > 0) say(`for entries that there are not: ${page.dormant.join(', ')}`);
  return DONE;
}

/** Of the value itself, or of the nearest thing around it that was given. */
function originOf(path: string, origins: Readonly<Record<string, string>>): string {
  for (let text = path; text !== ''; text = text.replace(/(\.[^.[\]]*|\[[^\]]*\]|^[^.[]*)$/, '')) {
    const origin = origins[text];
    if (origin !== undefined) return origin;
  }
  return 'default';
}

interface Assignment {
  readonly path: string;
  readonly value: string;
}

export async function configSet(
  assignment: Assignment,
  options: AdminOptions & Author & { readonly ifVersion?: number },
  environment: Environment,
): Promise<number> {
  const { why, ifVersion } = options;
  const body = {
    patch: patchOf(assignment),
    why,
    ...whoOf(options, environment),
    ...(ifVersion === undefined ? {} : { version: ifVersion }),
  };
  return change({ path: '/config', method: 'PUT', body }, options, environment);
}

export async function configDryRun(
  assignment: Assignment,
  options: AdminOptions & Author,
  environment: Environment,
): Promise<number> {
  const body = { patch: patchOf(assignment) };
  return change({ path: '/config/dry-run', method: 'POST', body }, options, environment);
}

export async function configRollback(
  version: number,
  options: AdminOptions & Author,
  environment: Environment,
): Promise<number> {
  const body = {
    version,
    ...(options.why === undefined ? {} : { why: options.why }),
    ...whoOf(options, environment),
  };
  return change({ path: '/config/rollback', method: 'POST', body }, options, environment);
}

interface Change {
  readonly path: string;
  readonly method: 'PUT' | 'POST';
  readonly body: object;
}

async function change(
  { path, ...sent }: Change,
  options: AdminOptions,
  environment: Environment,
): Promise<number> {
  try {
    const done = (await askAdmin(path, options, environment, sent)) as Done;
    if (options.json === true) sayJson(done);
    else say(doneText(done));
    return DONE;
  } catch (error) {
    if (error instanceof AdminRefusal && options.json === true) sayJson(error.problem);
    throw error;
  }
}

function doneText({ version, changed, changedTotal, needsRestart }: Done): string {
  const lines = [`version ${version}`];
  if (changed.length === 0) lines.push('nothing differs');
  else lines.push(fit(['PATH', 'FROM', 'TO'], changed.map(differenceRow), [0, 1, 2]));
  if (changedTotal > changed.length) lines.push(`and ${changedTotal - changed.length} more`);
  if (needsRestart.length > 0) lines.push(`waits for a restart: ${needsRestart.join(', ')}`);
  return lines.join('\n');
}

function differenceRow({ path, from, to }: ConfigDifference): string[] {
  return [path, valueText(from), valueText(to)];
}

export async function configHistory(options: AdminOptions, environment: Environment): Promise<number> {
  const page = (await askAdmin('/config/history', options, environment)) as {
    readonly versions: readonly ConfigVersion[];
  };
  if (options.json === true) sayJson(page);
  else if (page.versions.length === 0) say('Nothing was changed yet.');
  else say(fit(['VERSION', 'AT', 'WHO', 'CHANGED', 'WHY'], page.versions.map(versionRow), [2, 3, 4]));
  return DONE;
}

function versionRow({ version, at, who, why, changed }: ConfigVersion): string[] {
  const [first] = changed;
  const more = changed.length > 1 ? ` and ${changed.length - 1} more` : '';
  const what =
    first === undefined ? '' : `${first.path} ${valueText(first.from)} → ${valueText(first.to)}${more}`;
  return [String(version), new Date(at).toISOString().replace(/\.\d+Z$/, 'Z'), who, what, why];
}

function fit(head: readonly string[], rows: readonly string[][], shrinks: readonly number[]): string {
  return table(head, rows, { width: terminalWidth(), shrinks });
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function whoOf({ who }: Author, environment: Environment): { readonly who?: string } {
  const name = who ?? environment['USER'] ?? '';
  return name === '' ? {} : { who: name.slice(0, 64) };
}

function namesOf(path: string): readonly string[] {
  const names = namesOfPath(path);
  if (names !== undefined) return names;
  const example = 'such as classes.critical.weight or models[llama-3.1:8b].off';
  throw new CliError(`Expected a path, ${example} (received ${JSON.stringify(path)})`, USAGE);
}

function patchOf({ path, value }: Assignment): object {
  return namesOf(path).reduceRight<unknown>((inner, name) => ({ [name]: inner }), valueOf(value)) as object;
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
