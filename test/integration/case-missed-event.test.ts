/**
 * Missed event (publicly reported as vllm-project/production-stack#1091 and gpustack/gpustack#6231): a dead node is
 * used for 22 hours, a recovered one never. Here the periodic look converges both ways with no event at all; that
 * three intervals of the default fit into 30 s is tested beside the defaults.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ask,
  type CaseBench,
  createCaseBench,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  nodeRow,
  within,
} from '../support/case-bench.ts';

const SPEEDUP = 36;
const RECONCILE_MS = 1_000;
const INTERVALS = 3;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

describe('the periodic look, without any request or report', () => {
  it('takes a dead node out and a recovered one in, each within three intervals', async () => {
    const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
    const fleet = await bench.fleet({
      speedup: SPEEDUP,
      nodes: ['only', 'other'].map((id) => ({ id, kind: 'image', model: IMAGE_MODEL, ...hardware })),
    });
    const started = await bench.gateway({
      models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP) }],
      nodes: imageNodes(fleet),
      // The lease is far longer than the test: nothing but the look may end it.
      health: { reconcileMs: RECONCILE_MS, suspectLeaseMs: 60_000 },
    });
    const state = async (): Promise<string> => (await nodeRow(started, 'only')).state;
    expect(await state()).not.toBe('suspect');
    await fleet.setFaults('only', { dead: true });
    const ms = INTERVALS * RECONCILE_MS;
    await within(ms, 'the dead node is suspect', async () => (await state()) === 'suspect');
    for (let i = 0; i < 4; i++) {
      expect(await ask(started.dataUrl, { model: IMAGE_MODEL })).toMatchObject({
        status: 200,
        headers: { 'x-spillway-node': 'other', 'x-spillway-attempts': '1' },
      });
    }
    await fleet.setFaults('only', { dead: false });
    await within(ms, 'the recovered node is open', async () => (await state()) !== 'suspect');
    await fleet.setFaults('other', { hang: true });
    const answers = await Promise.all(
      [1, 2].map(() => ask(started.dataUrl, { model: IMAGE_MODEL, deadlineMs: 2_000 })),
    );
    expect(
      answers.some((answer) => answer.headers['x-spillway-node'] === 'only' && answer.status === 200),
    ).toBe(true);
  });
});
