/** Conversations over real sockets: the next turn goes to the node that computed the ones before, if that is sooner. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WorkProfile } from '../../src/core/config/types.ts';
import { type CaseBench, createCaseBench, nodeAt, within } from '../support/case-bench.ts';
import { completion, sendJson } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

/** Reading the prompt is nearly all of the work: 1 ms for four bytes. */
const READING: WorkProfile = { kind: 'llm', fixedMs: 0, prefillMsPerToken: 1, decodeMsPerToken: 0 };

interface Pair {
  /** Who answered. */
  ask(turns: readonly string[]): Promise<string>;
  /** From now on the node's answers are held back, until they are let go. */
  readonly held: Map<string, (() => void)[]>;
}

async function startPair(prefixBlocks: number): Promise<Pair> {
  const held: Pair['held'] = new Map();
  const nodes = [];
  for (const id of ['one', 'two']) {
    const node = await bench.node((res) => {
      const answer = (): void => sendJson(res, 200, completion('hello'));
      const waiting = held.get(id);
      if (waiting === undefined) answer();
      else waiting.push(answer);
    });
    nodes.push(nodeAt(id, node, { slots: 1, prefixBlocks }));
  }
  const { dataUrl } = await bench.gateway({
    nodes,
    models: [{ id: 'tiny', profile: READING }],
    placement: { prefixBlockBytes: 256 },
    gates: { 'flow-wait': 'off', timeouts: 'off' },
  });
  return {
    held,
    async ask(turns) {
      const messages = turns.map((content) => ({ role: 'user', content }));
      const answer = await fetch(`${dataUrl}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'tiny', messages, max_tokens: 1 }),
      });
      await answer.text();
      return answer.headers.get('x-spillway-node') ?? `status ${answer.status}`;
    },
  };
}

/** What somebody says, unlike anything that others say: at length to begin with, so that it is worth following. */
function said(who: number, turn: number): string {
  return `${who}.${turn} `.repeat(turn === 0 ? 3_000 : 100);
}

/** All that somebody has said up to a turn, and what was answered counts for nothing here. */
function talk(who: number, turns: number): readonly string[] {
  return Array.from({ length: turns }, (_, at) => said(who, at));
}

describe('a conversation over two nodes', () => {
  test('goes on where it was, on whichever of them that is', async () => {
    const pair = await startPair(10_000);
    const homes = new Map<number, string>();
    // Two at once begin on two nodes, and these have proven themselves with the first of them.
    for (let who = 0; who < 20; who += 2) {
      const [one, two] = await Promise.all([pair.ask(talk(who, 1)), pair.ask(talk(who + 1, 1))]);
      homes.set(who, one).set(who + 1, two);
    }
    const moved: string[] = [];
    for (let turn = 2; turn <= 4; turn++) {
      for (const [who, home] of homes) {
        const node = await pair.ask(talk(who, turn));
        if (node !== home) moved.push(`${who} from ${home} to ${node}`);
      }
    }
    expect([...homes.values()].filter((home) => home === 'one')).toHaveLength(10);
    expect(moved).toEqual([]);
  });

  test('does not wait for its node longer than that saves', async () => {
    const pair = await startPair(10_000);
    pair.held.set('one', []).set('two', []);
    // It begins like the one that comes next, and takes its node for many times as long as that would save.
    const long = pair.ask([said(1, 0), ...Array.from({ length: 8 }, (_, at) => said(3 + at, 0))]);
    await within(5_000, 'the long one is on a node', () => [...pair.held.values()].flat().length === 1);
    const [home, other] = pair.held.get('one')?.length === 1 ? ['one', 'two'] : ['two', 'one'];
    pair.held.delete(other as string);
    expect(await pair.ask([said(1, 0), said(1, 1)])).toBe(other);
    for (const answer of pair.held.get(home as string) ?? []) answer();
    expect(await long).toBe(home);
  });
});
