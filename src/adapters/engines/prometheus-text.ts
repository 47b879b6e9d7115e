/**
 * Reads the Prometheus text format as engines write it. Tolerant: a line that cannot be read is skipped, and a
 * metric that is absent, or not a finite number, is unknown. Labels of engines are ignored: one that runs several
 * replicas reports one sample each.
 *
 * Source: the Prometheus text exposition format, version 0.0.4, and OpenMetrics' `# EOF`.
 */

/** Samples kept for one name; engines report a handful. */
const SAMPLES_PER_NAME_MAX = 64;

export type Samples = ReadonlyMap<string, readonly number[]>;

/** Keeps only the names that are asked for: an engine's page may hold thousands of lines. */
export function readSamples(text: string, wanted: ReadonlySet<string>): Samples {
  const samples = new Map<string, number[]>();
  for (const line of text.split('\n')) {
    const sample = readLine(line, wanted);
    if (sample === undefined) continue;
    const known = samples.get(sample.name);
    if (known === undefined) samples.set(sample.name, [sample.value]);
    else if (known.length < SAMPLES_PER_NAME_MAX) known.push(sample.value);
  }
  return samples;
}

/** The samples of the first name that is present; engines rename their metrics between versions. */
export function firstOf(samples: Samples, names: readonly string[]): readonly number[] | undefined {
  for (const name of names) {
    const found = samples.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Samples kept of a page that is read by label: a host has a few devices, each perhaps in seven parts. */
const LABELLED_SAMPLES_MAX = 1_024;

export interface LabelledSample {
  readonly name: string;
  readonly value: number;
  /** Values of the labels that were asked for, in that order; '' where one is absent. */
  readonly labels: readonly string[];
}

/** As above, with some labels. */
export function readLabelled(
  text: string,
  wanted: ReadonlySet<string>,
  labels: readonly string[],
): readonly LabelledSample[] {
  const samples: LabelledSample[] = [];
  for (const line of text.split('\n')) {
    const sample = readLine(line, wanted);
    if (sample === undefined) continue;
    samples.push({ ...sample, labels: labels.map((label) => labelOf(line, label)) });
    if (samples.length >= LABELLED_SAMPLES_MAX) break;
  }
  return samples;
}

/** The value between its quotes, escapes as they are: compared, never shown. */
function labelOf(line: string, label: string): string {
  const match = new RegExp(`[{,]\\s*${label}="((?:[^"\\\\]|\\\\.)*)"`).exec(line);
  return match?.[1] ?? '';
}

function readLine(line: string, wanted: ReadonlySet<string>): { name: string; value: number } | undefined {
  const nameEnd = line.search(/[{ \t]/);
  if (nameEnd <= 0 || line.startsWith('#')) return undefined;
  const name = line.slice(0, nameEnd);
  if (!wanted.has(name)) return undefined;
  // A label value may hold any escaped character, braces included: the value follows the last one.
  const rest = line[nameEnd] === '{' ? line.slice(line.lastIndexOf('}') + 1) : line.slice(nameEnd);
  const text = rest.trim().split(/[ \t]+/, 1)[0] ?? '';
  const value = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) ? { name, value } : undefined;
}
