/** A trace by its format. Throws a `TraceError` with all issues when the file is not one. */
import { readAzureTrace } from './azure.ts';
import { readMooncakeTrace } from './mooncake.ts';
import { readServegenTrace } from './servegen.ts';
import { TraceError, type TraceReading, type TraceRow, type TraceWindow } from './trace.ts';

/** Requests by instant and size. */
export function readRows(format: 'azure' | 'mooncake', text: string, file: string): readonly TraceRow[] {
  return entriesOf(format === 'azure' ? readAzureTrace(text, file) : readMooncakeTrace(text, file));
}

/** Rates by time. */
export function readWindows(text: string, file: string): readonly TraceWindow[] {
  return entriesOf(readServegenTrace(text, file));
}

function entriesOf<Entry>(reading: TraceReading<Entry>): readonly Entry[] {
  if (reading.kind === 'invalid') throw new TraceError(reading.issues);
  return reading.entries;
}
