/** `spillway signals`: what detectors find wrong in a running gateway that looks well. */
import { AdminRefusal, askAdmin } from './admin-client.ts';
import { CliError } from './exit.ts';
import { duration, printable, wrapped } from './output.ts';
import type { Environment } from './state.ts';
import { showing, type WatchOptions } from './terminal/showing.ts';

export interface Finding {
  readonly signal: string;
  readonly severity: 'warn' | 'page';
  readonly since: number;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly evidence: Readonly<Record<string, number | string>>;
  readonly says: string;
  readonly remedy: string;
  readonly docs: string;
}

export interface SignalsPage {
  readonly signals: readonly Finding[];
  readonly detectors: readonly {
    readonly signal: string;
    readonly state: 'quiet' | 'watching' | 'blind' | 'active';
    readonly why: string;
  }[];
}

const NO_SIGNALS =
  'This gateway tells no signals (404 at /spillway/v1/signals): it is of an older version than this command';
const NOT_FOUND = 404;
const INDENT = '      ';

export async function signals(options: WatchOptions, environment: Environment): Promise<number> {
  return showing(options, async () => {
    const page = await askSignals(options, environment);
    if (page === undefined) throw new CliError(NO_SIGNALS);
    return { document: page, text: (width) => signalsText(page, width, Date.now()) };
  });
}

/** Undefined when the gateway has no such page. */
export async function askSignals(
  options: WatchOptions,
  environment: Environment,
): Promise<SignalsPage | undefined> {
  try {
    return (await askAdmin('/signals', options, environment)) as SignalsPage;
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === NOT_FOUND) return undefined;
    throw error;
  }
}

/** Each finding with its evidence and what to do; then what the detectors that found nothing are doing. */
export function signalsText(page: SignalsPage, width: number, now: number): string {
  const found = bySeverity(page.signals);
  const head = found.length === 0 ? 'Nothing found.' : `${found.length} found.`;
  return [head, ...found.flatMap((one) => findingLines(one, width, now)), ...detectorLines(page, width)].join(
    '\n',
  );
}

/** Pages first, then the oldest. */
export function bySeverity(found: readonly Finding[]): readonly Finding[] {
  return found.toSorted(
    (a, b) => Number(b.severity === 'page') - Number(a.severity === 'page') || a.since - b.since,
  );
}

export function findingHead({ severity, signal, subject, since }: Finding, now: number): string {
  const where = subject.id === '' ? subject.kind : `${subject.kind} ${subject.id}`;
  return printable(`${severity}  ${signal}: ${where}, for ${duration(Math.max(0, now - since))}`);
}

function findingLines(one: Finding, width: number, now: number): string[] {
  const evidence = Object.entries(one.evidence).map(([name, value]) => `${name} ${numberText(value)}`);
  const parts = [one.says, `Evidence: ${evidence.join(', ')}`, `Do: ${one.remedy}`, one.docs];
  const room = Math.max(20, width - INDENT.length);
  return [
    findingHead(one, now),
    ...parts.flatMap((part) => wrapped(part, room).map((line) => `${INDENT}${line}`)),
  ];
}

function numberText(value: number | string): string {
  return typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(3) : String(value);
}

function detectorLines({ detectors }: SignalsPage, width: number): string[] {
  const counts = Object.entries(Object.groupBy(detectors, ({ state }) => state));
  const summary = counts.map(([state, list]) => `${list.length} ${state}`).join(', ');
  const blind = detectors.filter(({ state }) => state === 'blind');
  return [
    '',
    ...wrapped(`Detectors: ${summary === '' ? 'none' : summary}`, width),
    ...blind.flatMap(({ signal, why }) => wrapped(`blind  ${signal}: ${why}`, width)),
  ];
}
