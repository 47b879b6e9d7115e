/** One number of the configuration, and how it is written down. */
export interface Setting {
  readonly value: number;
  readonly unit:
    | 'ms'
    | 'blocks'
    | 'bytes'
    | 'ratio'
    | 'count'
    | 'tasks'
    | 'reference ms'
    | 'multiple'
    | 'port'
    | 'status'
    | 'weight'
    | 'requests'
    | 'requests per minute'
    | 'tokens'
    | 'tokens per minute';
  readonly min: number;
  readonly max: number;
  readonly integer: boolean;
  readonly reason: string;
  readonly source: string;
}

export const DAY_MS = 86_400_000;
export const KIB = 1024;
export const MIB: number = 1024 * KIB;
export const GIB: number = 1024 * MIB;

type Unit = Setting['unit'];
type Range = readonly [min: number, max: number];

export function whole(
  value: number,
  unit: Unit,
  range: Range,
  why: readonly [reason: string, source: string],
): Setting {
  return Object.freeze({
    value,
    unit,
    min: range[0],
    max: range[1],
    integer: true,
    reason: why[0],
    source: why[1],
  });
}

export function real(
  value: number,
  unit: Unit,
  range: Range,
  why: readonly [reason: string, source: string],
): Setting {
  return Object.freeze({
    value,
    unit,
    min: range[0],
    max: range[1],
    integer: false,
    reason: why[0],
    source: why[1],
  });
}

export const UNIT_SHARE: Range = [0, 1];
/** A share of a bound: nothing at all would refuse everything for ever. */
export const PART: Range = [0.01, 1];
