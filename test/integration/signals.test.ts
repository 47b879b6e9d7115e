/**
 * The fault matrix over the real gateway: emulated cards and scripted nodes, real sockets, and detectors that look twenty times
 * a second, so that their minute is three seconds. More faults, each in a process of its own: bench/signals/matrix.ts --sockets.
 * In virtual time the matrix is whole: the same command without it.
 */
import { describe, expect, it } from 'vitest';
import type { HttpClient } from '../../src/apps/demo/http-client.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import type { EmulatedFleet } from '../../src/emulator/index.ts';
import {
  type CaseBench,
  createCaseBench,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  nodeAt,
  send,
  type Wish,
  within,
} from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

const SAMPLE_MS = 50;
/** A picture takes about a tenth of a second. */
const SPEEDUP = 12;
/** Pictures of a thirtieth of a second: too short for the scheduler to judge a card's pace itself. */
const QUICK_SPEEDUP = 36;
const FOUND_MS = 80_000;

interface Finding {
  readonly signal: string;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly says: string;
}

async function findings(started: StartedGateway): Promise<readonly Finding[]> {
  const { json } = await call(`${started.adminUrl}/spillway/v1/signals`, { token: started.adminToken });
  return json['signals'] as readonly Finding[];
}

/** Users who ask, read the answer and ask again, until the test is over. */
function users(bench: CaseBench, client: HttpClient, count: number, wish: Wish): void {
  let isOver = false;
  const user = async (): Promise<void> => {
    while (!isOver) await send(client, wish);
  };
  const all = Array.from({ length: count }, user);
  bench.onEnd(async () => {
    isOver = true;
    await Promise.all(all);
  });
}

interface Cards {
  readonly fleet: EmulatedFleet;
  readonly started: StartedGateway;
}

async function cards(
  bench: CaseBench,
  count: number,
  { speedup = SPEEDUP, ...change }: ConfigInput & { readonly speedup?: number } = {},
): Promise<Cards> {
  const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
  const fleet = await bench.fleet({
    speedup,
    nodes: Array.from({ length: count }, (_, at) => ({
      id: `card-${at}`,
      kind: 'image',
      model: IMAGE_MODEL,
      ...hardware,
    })),
  });
  const started = await bench.gateway({
    nodes: imageNodes(fleet),
    models: [{ id: IMAGE_MODEL, profile: imageProfile(speedup) }],
    signals: { sampleMs: SAMPLE_MS },
    ...change,
  });
  return { fleet, started };
}

/** The finding of a signal, once it is there. */
function found(started: StartedGateway, signal: string): Promise<Finding> {
  return within(FOUND_MS, `${signal} is found`, async () =>
    (await findings(started)).find((finding) => finding.signal === signal),
  );
}

const FAULT_TEST_MS = 120_000;

// Each waits for a window to fill, so they do it side by side.
describe('the gateway finds out that', () => {
  it.concurrent(
    'a card fails a part of its requests while its probes are well',
    async ({ onTestFinished }) => {
      const bench = createCaseBench();
      onTestFinished(() => bench.end());
      const { fleet, started } = await cards(bench, 4, { health: { ejectMs: 100, ejectMsMax: 100 } });
      users(bench, bench.client(started.dataUrl), 5, { model: IMAGE_MODEL });
      await fleet.setFaults('card-1', { failRatio: 0.25 });
      const finding = await found(started, 'ready-but-failing');
      expect(finding.subject).toEqual({ kind: 'node', id: 'card-1' });
    },
    FAULT_TEST_MS,
  );

  it.concurrent(
    'a card takes five times as long as its equals',
    async ({ onTestFinished }) => {
      const bench = createCaseBench();
      onTestFinished(() => bench.end());
      const { fleet, started } = await cards(bench, 6, {
        speedup: QUICK_SPEEDUP,
        // It is found to be slow by the scheduler as well, and is to come back.
        health: { ejectMs: 100, ejectMsMax: 100 },
        gates: { timeouts: 'off' },
      });
      // So many that waiting for a quick card takes longer than the slow one: else it, known to be slow, would not be asked.
      users(bench, bench.client(started.dataUrl), 80, { model: IMAGE_MODEL });
      await fleet.setFaults('card-2', { slowFactor: 5 });
      const finding = await found(started, 'node-variance');
      expect(finding.subject).toEqual({ kind: 'node', id: 'card-2' });
    },
    FAULT_TEST_MS,
  );

  it.concurrent(
    'two cards hang, and nothing ends their requests',
    async ({ onTestFinished }) => {
      const bench = createCaseBench();
      onTestFinished(() => bench.end());
      const { fleet, started } = await cards(bench, 6, { gates: { timeouts: 'off' } });
      const client = bench.client(started.dataUrl);
      users(bench, client, 8, { model: IMAGE_MODEL, deadlineMs: 60_000 });
      const hung = ['card-3', 'card-4'];
      // Or those who wait for them would wait until their deadline.
      bench.onEnd(
        async () => void (await Promise.all(hung.map((id) => fleet.setFaults(id, { dead: true })))),
      );
      for (const id of hung) await fleet.setFaults(id, { hang: true });
      const finding = await found(started, 'little-gap');
      expect(finding.says).toMatch(/on card-[34]$/);
    },
    FAULT_TEST_MS,
  );

  it.concurrent(
    'a card goes and comes',
    async ({ onTestFinished }) => {
      const bench = createCaseBench();
      onTestFinished(() => bench.end());
      const { fleet, started } = await cards(bench, 3, {
        health: { ejectMs: 100, ejectMsMax: 100, reconcileMs: 100, suspectLeaseMs: 100 },
      });
      users(bench, bench.client(started.dataUrl), 4, { model: IMAGE_MODEL });
      let isDead = false;
      const turning = setInterval(() => {
        isDead = !isDead;
        void fleet.setFaults('card-0', { dead: isDead });
      }, 700);
      bench.onEnd(() => clearInterval(turning));
      const finding = await found(started, 'ownership-flapping');
      expect(finding.subject).toEqual({ kind: 'node', id: 'card-0' });
    },
    FAULT_TEST_MS,
  );

  it.concurrent(
    'an idle node once refused for long, and is not asked again',
    async ({ onTestFinished }) => {
      const bench = createCaseBench();
      onTestFinished(() => bench.end());
      const shy = await bench.node((res) =>
        sendJson(res, 503, { error: { message: 'full' } }, { 'retry-after': '60' }),
      );
      const slow = await bench.node(
        (res) => void setTimeout(() => sendJson(res, 200, completion('slow')), 200),
      );
      const started = await bench.gateway({
        nodes: [nodeAt('shy', shy), nodeAt('slow', slow)],
        models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 150 } }],
        gates: { 'flow-wait': 'off', ladder: 'off', 'retry-shed': 'off' },
        signals: { sampleMs: SAMPLE_MS },
      });
      users(bench, bench.client(started.dataUrl), 24, { deadlineMs: 30_000 });
      const finding = await found(started, 'phantom-starvation');
      expect(finding.subject).toEqual({ kind: 'model', id: 'tiny' });
      expect(finding.says).toContain('shy is idle: refused-recently');
    },
    FAULT_TEST_MS,
  );

  it.concurrent(
    'a node closes its connection after each answer',
    async ({ onTestFinished }) => {
      const bench = createCaseBench();
      onTestFinished(() => bench.end());
      const node = await bench.node((res) =>
        sendJson(res, 200, completion('hello'), { connection: 'close' }),
      );
      const started = await bench.gateway({
        nodes: [nodeAt('closing', node, { slots: 4 })],
        models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 5 } }],
        signals: { sampleMs: SAMPLE_MS },
      });
      users(bench, bench.client(started.dataUrl), 4, {});
      await found(started, 'connection-churn');
      // It knows all the same how many there were.
      const { json } = await call(`${started.adminUrl}/spillway/v1/signals`, { token: started.adminToken });
      expect(json['detectors']).toContainEqual(
        expect.objectContaining({ signal: 'connection-churn', state: 'active' }),
      );
    },
    FAULT_TEST_MS,
  );

  it.concurrent(
    'nothing is wrong with cards that serve',
    async ({ onTestFinished }) => {
      const bench = createCaseBench();
      onTestFinished(() => bench.end());
      const { started } = await cards(bench, 5);
      users(bench, bench.client(started.dataUrl), 4, { model: IMAGE_MODEL });
      await within(FOUND_MS, 'its windows are full', async () => {
        const { json } = await call(`${started.adminUrl}/spillway/v1/signals`, { token: started.adminToken });
        const detectors = json['detectors'] as readonly { readonly signal: string; readonly state: string }[];
        return detectors.some(({ signal, state }) => signal === 'little-gap' && state !== 'blind');
      });
      const failures = ['ready-but-failing', 'phantom-starvation', 'conservation-break', 'connection-churn'];
      const seen = (await findings(started)).map(({ signal }) => signal);
      expect(seen.filter((signal) => failures.includes(signal))).toEqual([]);
    },
    FAULT_TEST_MS,
  );
});
