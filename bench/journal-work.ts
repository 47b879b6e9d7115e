/**
 * The journal's own work: processor time per request of a scheduler in the gateway's loop that records nothing, that keeps
 * the ring of decisions, and that writes a journal to files as well. In turn, within one process; no sockets, so that what the
 * machine does besides falls on all alike. Files are on the disk of the temporary folder, and their threads are counted.
 *
 *   node bench/journal-work.ts [--json] [--rounds N]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createJournalFile } from '../src/adapters/journal-file/index.ts';
import { defaultSchedulerConfig } from '../src/core/config/index.ts';
import { NO_NEEDS } from '../src/core/request/needs.ts';
import { createScheduler } from '../src/core/scheduler/index.ts';
import { createSystemClock } from '../src/runtime/clock.ts';
import { EventLoop } from '../src/runtime/event-loop.ts';
import { JournalRecorder } from '../src/runtime/journal/journal-recorder.ts';
import { Recording } from '../src/runtime/journal/recording.ts';
import { median } from './gateway/compare.ts';

const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, rounds: { type: 'string', default: '31' } },
});
const REQUESTS = 4_000;
const NODES = 20;
const MODEL = 'llama-3.1-8b-instruct';
const SHAPE = {
  promptBytes: 4_000,
  outputTokensMax: 256,
  images: 0,
  steps: 0,
  pixelsPerImage: 0,
  statedWorkUs: 0,
};
const CASES = ['off', 'ring', 'journal'] as const;
type Case = (typeof CASES)[number];

const folder = mkdtempSync(join(tmpdir(), 'spillway-journal-bench-'));
const NOTHING = (): void => {};
const PERFORMER = {
  admitted: NOTHING,
  assign: NOTHING,
  degraded: NOTHING,
  abort: NOTHING,
  outcome: NOTHING,
  nodeState: NOTHING,
  nodeDrained: NOTHING,
};

interface Bench {
  run(requests: number): void;
  close(): Promise<void>;
}

function createBench(which: Case): Bench {
  const clock = createSystemClock();
  const config = defaultSchedulerConfig({});
  const scheduler = createScheduler(config);
  const store = createJournalFile({ folder: join(folder, which), run: 'bench', bytesMax: 1e12 });
  const options = { store, run: 'bench', code: { version: 'bench', commit: '' }, segmentBytesMax: 1e12 };
  const recorder =
    which === 'journal' ? new JournalRecorder(options, scheduler, { clock, config }) : undefined;
  const recording = which === 'off' ? undefined : new Recording(scheduler, recorder);
  const loop = new EventLoop(scheduler, clock, { performer: PERFORMER, recorder: recording });
  for (let node = 0; node < NODES; node++) {
    const spec = {
      id: `gpu-${node}.rack-7`,
      models: [{ model: MODEL }],
      slots: 8,
      batching: false,
      hardware: 'A100',
    };
    loop.applyNow({ kind: 'node-registered', node: { ...spec, labels: {}, heartbeats: false } });
  }
  let id = 0;
  return {
    run(requests) {
      for (let count = 0; count < requests; count++) {
        id += 1;
        const sized = {
          workUs: 812_345,
          firstByteWorkUs: 81_234,
          tokens: 1_256,
          promptTokens: 1_000,
          bytes: 4_400,
        };
        const named = { className: 'normal', tenant: `tenant-${id % 50}`, model: MODEL, needs: NO_NEEDS };
        const deadlineAt = clock.nowUs() + 60_000_000;
        const rest = { deadlineAt, deadlineWished: false, stream: true, fingerprint: 'f' };
        loop.applyNow({ kind: 'submit', task: { id, ...named, ...sized, ...rest } });
        loop.applyNow({ kind: 'attempt-sent', taskId: id });
        loop.applyNow({ kind: 'attempt-first-byte', taskId: id });
        const usage = { promptTokens: 998, outputTokens: 211 };
        recording?.learn(MODEL, SHAPE, usage);
        scheduler.learn(MODEL, SHAPE, usage);
        loop.applyNow({
          kind: 'attempt-ended',
          taskId: id,
          result: { kind: 'ok', usage, silenceUs: 21_000 },
        });
      }
    },
    async close() {
      loop.stop();
      await (recorder === undefined ? store.close() : recorder.close());
    },
  };
}

const benches = CASES.map(createBench);
const samples: number[][] = CASES.map(() => []);
try {
  for (const bench of benches) bench.run(20_000);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [index, bench] of benches.entries()) {
      const before = process.cpuUsage();
      bench.run(REQUESTS);
      // What was written behind is part of the price.
      await new Promise((resolve) => setTimeout(resolve, 20));
      const spent = process.cpuUsage(before);
      samples[index]?.push((spent.user + spent.system) / REQUESTS);
    }
  }
  const figures = Object.fromEntries(CASES.map((name, index) => [name, median(samples[index] ?? [])]));
  if (values.json) process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
  else
    for (const name of CASES)
      process.stdout.write(`${name.padEnd(8)} ${figures[name]?.toFixed(2)} us CPU per request\n`);
} finally {
  await Promise.all(benches.map((bench) => bench.close()));
  rmSync(folder, { recursive: true, force: true });
}
