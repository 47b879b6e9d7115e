/** Samples made coarse enough to be drawn: neighbours become one point. */

/** Points of a line: as many as a plot is wide in pixels. */
const POINTS_MAX = 360;

type Join = 'mean' | 'max' | 'last';

/** How many neighbours become one so that at most `max` are left. */
export function stride(length: number, max: number = POINTS_MAX): number {
  return Math.max(1, Math.ceil(length / max));
}

export function thinned(values: readonly number[], every: number, join: Join): readonly number[] {
  if (every === 1) return values;
  return Array.from({ length: Math.ceil(values.length / every) }, (_, at) => {
    const part = values.slice(at * every, (at + 1) * every);
    if (join === 'last') return part.at(-1) as number;
    if (join === 'max') return Math.max(...part);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

/** The greatest value, at least `floor`. */
export function peak(lists: readonly (readonly number[])[], floor: number): number {
  return lists.reduce((top, list) => list.reduce((most, value) => Math.max(most, value), top), floor);
}

/** Time on the axis: minutes, or hours from three of them on. */
export interface TimeAxis {
  readonly label: string;
  readonly perSecond: number;
}

export function timeAxis(seconds: number): TimeAxis {
  return seconds > 3 * 3_600
    ? { label: 'time (hours)', perSecond: 1 / 3_600 }
    : { label: 'time (minutes)', perSecond: 1 / 60 };
}
