/** Figures of a report by their path. */
import type { PolicyReport } from '../measure/report.ts';

/**
 * The number at `byClass.critical.attained`; a path that begins with no key of the report is looked for in `all`, so that
 * `responseMs.p99` means everybody's. Keys may themselves contain dots (`0.5-1s`). Undefined where there is no number.
 */
export function numberAt(report: PolicyReport, path: string): number | undefined {
  const parts = path.split('.');
  return find(report, parts) ?? find(report.all, parts);
}

function find(value: unknown, parts: readonly string[]): number | undefined {
  if (parts.length === 0) return typeof value === 'number' ? value : undefined;
  if (value === null || typeof value !== 'object') return undefined;
  for (let length = 1; length <= parts.length; length++) {
    const key = parts.slice(0, length).join('.');
    if (!Object.hasOwn(value, key)) continue;
    return find((value as Readonly<Record<string, unknown>>)[key], parts.slice(length));
  }
  return undefined;
}

/** Undefined as soon as one of the reports does not have it. */
export function numbersAt(reports: readonly PolicyReport[], path: string): readonly number[] | undefined {
  const numbers = reports.map((report) => numberAt(report, path));
  return numbers.length > 0 && numbers.every((one) => one !== undefined) ? numbers : undefined;
}
