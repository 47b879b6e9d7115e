/**
 * ServeGen clients (alibaba/ServeGen, `chunk-N-trace.csv`): a line per window of 600 s with `start in s, requests per
 * second, coefficient of variation, law, shape, scale`; law and all that follows is empty or 0 where nobody asked. The law
 * is that of the gaps and gives their form; their mean follows from the rate, as in the generator that comes with the data.
 */
import { US_PER_S } from '../../../base/units.ts';
import { type LineFault, readLines } from './read-lines.ts';
import type { TraceReading, TraceWindow } from './trace.ts';

const SILENCE: TraceWindow['law'] = Object.freeze({ kind: 'gamma', shape: 1 });
const LAWS: Readonly<Record<string, TraceWindow['law']['kind']>> = { Gamma: 'gamma', Weibull: 'weibull' };

export function readServegenTrace(text: string, file: string): TraceReading<TraceWindow> {
  return readLines(text, file, { parse: parseWindow, tiesAllowed: false });
}

function parseWindow(line: string): TraceWindow | LineFault {
  const fields = line.split(',');
  if (fields.length !== 6) return { rule: 'must have 6 fields', value: line };
  const [start = '', rate = '', , law = '', shape = ''] = fields.map((field) => field.trim());
  const atS = positive(start, 'start');
  const perSecond = positive(rate, 'rate');
  if (typeof atS !== 'number') return atS;
  if (typeof perSecond !== 'number') return perSecond;
  const atUs = Math.round(atS * US_PER_S);
  if (law === '' || perSecond === 0) return { atUs, perSecond: 0, law: SILENCE };
  const kind = LAWS[law];
  if (kind === undefined) return { rule: 'law must be Gamma, Weibull, or empty', value: law };
  const form = positive(shape, 'shape');
  if (typeof form !== 'number') return form;
  if (form < SHAPE_MIN) return { rule: `shape must be at least ${SHAPE_MIN}`, value: shape };
  return { atUs, perSecond, law: { kind, shape: form } };
}

/** The data's own least is 0.0067. Below, the mean gap is made by one in thousands. */
const SHAPE_MIN = 0.001;

function positive(text: string, name: string): number | LineFault {
  const value = text === '' ? Number.NaN : Number(text);
  const isValid = Number.isFinite(value) && value >= 0;
  return isValid ? value : { rule: `${name} must be a number of at least 0`, value: text };
}
