/**
 * Loaded before a gateway that is measured (`--import`, with `--expose-gc`): leaves its journal out and keeps it in turn, each for
 * `BENCH_TURN_REQUESTS`, and writes down the processor time of each turn. So both are measured in one process, whose code was
 * compiled once and whose heap lies where it lies. What was left out is a gap that the journal does not know of: it cannot be replayed.
 *
 * Every turn ends with a collection of its young objects, so that each pays for what it made; else the chance of one collection more or
 * less would be larger than what is looked for. On SIGUSR2 the turns so far are written into the file of `BENCH_TURNS`, and forgotten.
 */
import { writeFileSync } from 'node:fs';
import { env } from 'node:process';
import { createPrng } from '../../src/base/prng.ts';
import type { JournalRecorder } from '../../src/runtime/journal/journal-recorder.ts';
import { Recording } from '../../src/runtime/journal/recording.ts';

const REQUESTS_PER_TURN = Number(env['BENCH_TURN_REQUESTS']);

export interface Turn {
  readonly kind: 'off' | 'journal' | 'control';
  readonly cpuUsPerRequest: number;
}

const record = Recording.prototype.event;
const prng = createPrng(1);
let journal: JournalRecorder | undefined;
let kind: Turn['kind'] = 'off';
/** The other one of the two that stand between those without a journal. */
let other: Turn['kind'] | undefined;
let requests = 0;
let spent = process.cpuUsage();
let turns: Turn[] = [];

/** Without, one of the two, without, the other one: which comes first is drawn, so that nothing periodic falls on one of them. */
function next(): Turn['kind'] {
  if (kind !== 'off') return 'off';
  const drawn = other ?? (prng.nextBelow(2) === 0 ? 'journal' : 'control');
  other = other === undefined ? (drawn === 'journal' ? 'control' : 'journal') : undefined;
  return drawn;
}

function turn(recording: Recording): void {
  gc?.({ type: 'minor' });
  const now = process.cpuUsage();
  const cpuUs = now.user + now.system - spent.user - spent.system;
  turns.push({ kind, cpuUsPerRequest: cpuUs / REQUESTS_PER_TURN });
  spent = now;
  requests = 1;
  journal ??= recording.journal;
  kind = next();
  Object.assign(recording, { journal: kind === 'journal' ? journal : undefined });
}

Recording.prototype.event = function counted(event, now) {
  if (event.kind === 'submit' && ++requests > REQUESTS_PER_TURN) turn(this);
  record.call(this, event, now);
};

process.on('SIGUSR2', () => {
  writeFileSync(env['BENCH_TURNS'] as string, JSON.stringify(turns));
  turns = [];
});
