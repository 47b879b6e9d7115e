/** Stages of a workflow from the clients' headers to the finding, over real sockets; the detectors' minute is three seconds. */
import { expect, test } from 'vitest';
import { createCaseBench, nodeAt, send, within } from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

const FOUND_MS = 60_000;
const USERS = 40;

interface Found {
  readonly signals: readonly {
    readonly signal: string;
    readonly evidence: Readonly<Record<string, number | string>>;
  }[];
}

test('the gateway finds out where a workflow waits, from what its clients say of their stages', async ({
  onTestFinished,
}) => {
  const bench = createCaseBench();
  onTestFinished(() => bench.end());
  const node = await bench.node((res) => void setTimeout(() => sendJson(res, 200, completion('x')), 5));
  const slow = await bench.node(
    (res) => void setTimeout(() => sendJson(res, 200, completion('x')), 50),
    ['big'],
  );
  const started = await bench.gateway({
    nodes: [nodeAt('quick', node, { slots: 64 }), nodeAt('slow', slow, { models: [{ model: 'big' }] })],
    models: ['tiny', 'big'].map((id) => ({ id, profile: { kind: 'generic', meanMs: 20 } as const })),
    gates: { 'flow-wait': 'off', ladder: 'off' },
    signals: { sampleMs: 50 },
  });
  const look = async (): Promise<Found> => {
    const { json } = await call(`${started.adminUrl}/spillway/v1/signals`, { token: started.adminToken });
    return json as unknown as Found;
  };
  const client = bench.client(started.dataUrl);
  const ask = async (model: string, stage: string, parent = ''): Promise<string> => {
    const headers = { 'x-spillway-stage': stage, ...(parent === '' ? {} : { 'x-spillway-parent': parent }) };
    const { answer } = await send(client, { model, headers, deadlineMs: 30_000 });
    return answer?.headers.get('x-spillway-id') ?? '';
  };

  await ask('tiny', 'no name, but a sentence');
  let isOver = false;
  const user = async (): Promise<void> => {
    while (!isOver) {
      const plan = await ask('tiny', 'plan');
      const drawn = await ask('big', 'draw', plan);
      await ask('tiny', 'check', drawn);
    }
  };
  const users = Array.from({ length: USERS }, user);
  bench.onEnd(async () => {
    isOver = true;
    await Promise.all(users);
  });
  const finding = await within(FOUND_MS, 'contention-heat is found', async () =>
    (await look()).signals.find(({ signal }) => signal === 'contention-heat'),
  );
  // A check waits for nothing of its own: its heat is that of the drawing before it.
  expect(finding.evidence).toMatchObject({ top: 'draw, check, plan', stages: 3 });
  expect(finding.evidence['hunger']).toBeGreaterThanOrEqual(0.6);
  const { text } = await call(`${started.adminUrl}/metrics`, { token: started.adminToken });
  expect(text).toMatch(/^spillway_signal_active\{signal="contention-heat"\} 1$/m);
  expect(text).toMatch(/stage-unreadable"\} 1$/m);
  expect(text).not.toContain('draw');
}, 120_000);
