import { expect, test } from 'vitest';
import { sampleAt } from '../../../../test/support/samples.ts';
import { Past } from '../past.ts';
import type { NodeSample } from '../sample.ts';
import { nodeVariance } from './node-variance.ts';

const SPREAD = 0.1;

interface Node {
  readonly id: string;
  /** Tasks in a second, and how long one takes, over its work. */
  readonly tasks: (second: number) => number;
  readonly pace: (second: number) => number;
}

/** Five minutes of samples of nodes of one hardware and model; the times of a node spread a little. */
function accused(nodes: readonly Node[]): readonly string[] {
  const past = new Past();
  const sums = new Map(nodes.map(({ id }) => [id, { count: 0, sum: 0, squares: 0 }]));
  for (let second = 1; second <= 300; second++) {
    for (const { id, tasks, pace } of nodes) {
      const own = sums.get(id) ?? expect.unreachable();
      for (let i = 0; i < tasks(second); i++) {
        const x = Math.log(pace(second)) + (own.count % 2 === 0 ? SPREAD : -SPREAD);
        own.count += 1;
        own.sum += x;
        own.squares += x * x;
      }
    }
    past.add(sampleAt(second, { nodes: nodes.map(({ id }) => nodeSample(id, sums.get(id) as LogSums)) }));
  }
  const found = nodeVariance.look(past);
  return found.kind === 'seen' ? found.suspicions.map(({ subject }) => subject.id) : [];
}

type LogSums = NodeSample['predictions'];

function nodeSample(id: string, pace: LogSums): NodeSample {
  return {
    id,
    hardware: 'A100',
    state: 'active',
    isOpen: true,
    isReady: true,
    inflight: 1,
    slots: 1,
    drainUs: 0,
    capacity: 1,
    inflightUs: 0,
    started: pace.count,
    startedWorkUs: 0,
    served: pace.count,
    servedWorkUs: 0,
    failed: 0,
    refused: 0,
    elapsedUs: 0,
    flips: 0,
    predictions: { count: 0, sum: 0, squares: 0 },
    paces: [{ model: 'm', inflight: pace.count, ...pace }],
  };
}

const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
const always = (value: number) => (): number => value;

test('node-variance names the node that takes longer than its peers, since when it does too', () => {
  const slow = (id: string, since: number): Node => ({
    id,
    tasks: always(1),
    pace: (second) => (id === 'c' && second > since ? 2 : 1),
  });
  expect(accused(ids.map((id) => slow(id, 0)))).toEqual(['c']);
  expect(accused(ids.map((id) => slow(id, 60)))).toEqual(['c']);
});

test('node-variance accuses nobody of having had more to do since all became slower', () => {
  const busySince = (id: string): Node => ({
    id,
    tasks: (second) => (id === 'c' && second <= 230 ? 0 : 1),
    pace: (second) => (second > 230 ? 2.5 : 1),
  });
  expect(accused(ids.map(busySince))).toEqual([]);
});

test('node-variance still names who is slow among those that all became slower', () => {
  const slow = (id: string): Node => ({
    id,
    tasks: always(1),
    pace: (second) => (second > 230 ? 2.5 : 1) * (id === 'c' ? 2 : 1),
  });
  expect(accused(ids.map(slow))).toEqual(['c']);
});
