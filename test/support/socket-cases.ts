/**
 * What each detector is for, made over real sockets: the same faults as in virtual time (`signal-cases.ts`). The books of a gateway
 * cannot be spoiled from outside: for `conservation-break` it has a scheduler that loses some of what it served.
 */
import { sha256Hex } from '../../src/adapters/config-file/index.ts';
import type { EmulatedNodeInput } from '../../src/emulator/index.ts';
import { call } from '../integration/cli-fixture.ts';
import { IMAGE_MODEL, TEXT_MODEL, type Wish } from './case-bench.ts';
import { losingScheduler } from './losing-scheduler.ts';
import type { SocketCase } from './socket-run.ts';
import {
  cards,
  change,
  type Crowd,
  cordon,
  EJECTS_SHORTLY,
  idsOf,
  PATIENT,
  putLadder,
  type SceneInput,
  UNPROTECTED,
} from './socket-scene.ts';

const RARE_MODEL = `${IMAGE_MODEL}-rare`;
const BOOKS = losingScheduler();
const THREE_MODELS = ['a', 'b', 'c'].map((id) => `${IMAGE_MODEL}-${id}`);

/** Faults of one node, which is to be named. */
const NODE_CASES: readonly SocketCase[] = [
  {
    fault: 'two cards of six hang, and nothing ends their requests',
    raises: 'little-gap',
    mayRaise: ['silent-starvation', 'priority-inversion'],
    guilty: 'card-',
    warmLooks: 0,
    withinLooks: 240,
    scene: { emulated: cards(6), gates: { timeouts: 'off' } },
    begin({ fleet, crowd }) {
      crowd.users(8, () => PATIENT);
      return () => change(fleet, ['card-3', 'card-4'], { hang: true });
    },
  },
  {
    fault: 'an idle card once refused for long, and is not asked again',
    raises: 'phantom-starvation',
    mayRaise: ['queue-growth'],
    guilty: 'card-0',
    warmLooks: 60,
    withinLooks: 150,
    scene: { emulated: cards(2), gates: UNPROTECTED },
    begin({ fleet, crowd }) {
      crowd.users(50, () => PATIENT);
      return () => fleet.setFaults('card-0', { refuseStatus: 503, refuseRetryAfterS: 60 });
    },
  },
  {
    fault: 'one card of six takes 1.9 times as long, less than what ejects it',
    raises: 'node-variance',
    mayRaise: [],
    guilty: 'card-2',
    warmLooks: 0,
    withinLooks: 420,
    scene: { emulated: cards(6) },
    begin({ fleet, crowd }) {
      crowd.users(20, () => PATIENT);
      return () => fleet.setFaults('card-2', { slowFactor: 1.9 });
    },
  },
  {
    fault: 'one card of four fails a quarter of its requests, and its probes are well',
    raises: 'ready-but-failing',
    mayRaise: ['ghost-queue', 'ownership-flapping'],
    guilty: 'card-1',
    warmLooks: 0,
    withinLooks: 270,
    scene: { emulated: cards(4), health: EJECTS_SHORTLY },
    begin({ fleet, crowd }) {
      crowd.users(5, () => PATIENT);
      return () => fleet.setFaults('card-1', { failRatio: 0.25 });
    },
  },
  {
    fault: 'a card fails nine of ten requests at once, and is ejected for ten milliseconds only',
    raises: 'traffic-sink',
    mayRaise: ['ready-but-failing', 'ghost-queue', 'ownership-flapping'],
    guilty: 'card-1',
    warmLooks: 60,
    withinLooks: 210,
    scene: {
      emulated: cards(6),
      health: { ejectMs: 10, ejectMsMax: 10 },
    },
    begin({ fleet, crowd }) {
      crowd.users(14, () => PATIENT);
      return () => fleet.setFaults('card-1', { failRatio: 0.9 });
    },
  },
  {
    fault: 'a card goes and comes',
    raises: 'ownership-flapping',
    mayRaise: ['ghost-queue', 'ready-but-failing'],
    guilty: 'card-0',
    warmLooks: 0,
    withinLooks: 330,
    scene: {
      emulated: cards(3),
      health: { ...EJECTS_SHORTLY, reconcileMs: 100, suspectLeaseMs: 100 },
    },
    begin({ bench, fleet, crowd }) {
      crowd.users(4, () => PATIENT);
      let isDead = false;
      return () => {
        const turning = setInterval(() => {
          isDead = !isDead;
          void fleet.setFaults('card-0', { dead: isDead });
        }, 700);
        bench.onEnd(() => clearInterval(turning));
      };
    },
  },
  {
    fault: 'the memory of a working card stands at 93 %',
    raises: 'memory-fragmentation',
    mayRaise: [],
    guilty: 'card-1',
    warmLooks: 60,
    withinLooks: 150,
    scene: remembering(cards(4)),
    begin({ fleet, crowd }) {
      crowd.users(8, () => PATIENT);
      return () => fleet.setFaults('card-1', { memoryUse: 0.93 });
    },
  },
  {
    fault: 'the memory of a card that does little stands at 97 %',
    raises: 'memory-hoarding',
    mayRaise: [],
    guilty: 'card-1',
    warmLooks: 60,
    withinLooks: 150,
    scene: remembering(cards(4)),
    begin({ fleet, crowd }) {
      crowd.arrivals(
        'little',
        () => 4,
        () => PATIENT,
      );
      return () => fleet.setFaults('card-1', { memoryUse: 0.97 });
    },
  },
  {
    fault: 'what an engine says of its load stands still while it is full with work of others',
    raises: 'stale-readings',
    mayRaise: ['phantom-starvation'],
    guilty: 'text-0',
    warmLooks: 30,
    withinLooks: 120,
    scene: {
      emulated: texts(2, { sequencesMax: 4 }),
      node: () => ({ protocol: 'vllm', slots: 4 }),
      models: [{ id: TEXT_MODEL, profile: { kind: 'generic', meanMs: 80 } }],
      health: { reconcileMs: 1_000 },
    },
    begin({ fleet, crowd }) {
      crowd.users(3, () => ({ model: TEXT_MODEL, deadlineMs: 60_000, body: { max_tokens: 20 } }));
      return async () => {
        const [full] = fleet.nodes;
        const body = JSON.stringify({ prompt: 'of others', max_tokens: 300 });
        const others = Array.from({ length: 12 }, () => call(`${full?.url}/v1/completions`, { body }));
        void Promise.allSettled(others);
        while ((fleet.truth()[0]?.waiting ?? 0) === 0) await new Promise(setImmediate);
        await fleet.setFaults('text-0', { staleMetrics: true });
      };
    },
  },
];

function texts(count: number, change: Partial<EmulatedNodeInput> = {}): readonly EmulatedNodeInput[] {
  return cards(count, { id: 'text', kind: 'text', model: TEXT_MODEL, ...change });
}

/** Cards whose hosts tell their memory; engines take nothing of it at start. */
function remembering(emulated: readonly EmulatedNodeInput[]): SceneInput {
  return {
    emulated,
    node: (url) => ({ telemetry: { url: `${url}/device/metrics`, reservedUse: 0 } }),
    health: { reconcileMs: 1_000 },
  };
}

/** Faults of the whole fleet, or of what stands around it. */
const FLEET_CASES: readonly SocketCase[] = [
  {
    fault: 'all cards become four times slower while there is more than they can do',
    raises: 'silent-starvation',
    mayRaise: ['slo-drift', 'prediction-error', 'little-gap'],
    warmLooks: 260,
    withinLooks: 210,
    scene: { emulated: cards(4), gates: UNPROTECTED },
    begin({ fleet, crowd }) {
      crowd.users(16, () => ({ ...PATIENT, steps: 120 }));
      return () => change(fleet, idsOf(fleet), { slowFactor: 4 });
    },
  },
  {
    fault: 'every node has many places free and takes three times as long',
    raises: 'silent-overload',
    mayRaise: ['slo-drift', 'prediction-error'],
    guilty: 'normal',
    warmLooks: 320,
    withinLooks: 150,
    scene: {
      emulated: texts(4, { sequencesMax: 128 }),
      node: () => ({ slots: 128 }),
      models: [{ id: TEXT_MODEL, profile: { kind: 'generic', meanMs: 730 } }],
      gates: UNPROTECTED,
    },
    begin({ fleet, crowd }) {
      crowd.arrivals(
        'thin',
        () => 30,
        () => ({
          model: TEXT_MODEL,
          deadlineMs: 60_000,
          body: { max_tokens: 200 },
        }),
      );
      return () => change(fleet, idsOf(fleet), { slowFactor: 3 });
    },
  },
  {
    fault: 'all cards become slower, and answers come near their deadlines',
    raises: 'slo-drift',
    mayRaise: ['silent-overload', 'silent-starvation', 'prediction-error'],
    guilty: 'most nodes',
    warmLooks: 620,
    withinLooks: 330,
    scene: { emulated: cards(6), gates: UNPROTECTED },
    begin({ fleet, crowd }) {
      crowd.arrivals(
        'drift',
        () => 15,
        () => ({ model: IMAGE_MODEL, deadlineMs: 900 }),
      );
      return () => change(fleet, idsOf(fleet), { slowFactor: 2.5 });
    },
  },
  {
    fault: 'every card fails a seventh of its requests, and all are tried again elsewhere',
    raises: 'ghost-queue',
    mayRaise: ['ownership-flapping'],
    guilty: 'card-',
    warmLooks: 130,
    withinLooks: 150,
    scene: { emulated: cards(10), health: EJECTS_SHORTLY },
    begin({ fleet, crowd }) {
      crowd.arrivals(
        'ghosts',
        () => 45,
        () => PATIENT,
      );
      return () => change(fleet, idsOf(fleet), { failRatio: 0.15 });
    },
  },
  {
    fault: 'a proxy before the cards closes each connection after its answer',
    raises: 'connection-churn',
    mayRaise: [],
    warmLooks: 0,
    withinLooks: 150,
    scene: { emulated: cards(4) },
    begin({ fleet, crowd }) {
      crowd.users(4, () => PATIENT);
      return () => change(fleet, idsOf(fleet), { closeConnections: true });
    },
  },
  {
    fault: 'the memory of all cards stands at 97 %, and three models have more to do than they can',
    raises: 'joint-entropy',
    mayRaise: ['queue-growth', 'slo-drift', 'memory-hoarding'],
    warmLooks: 60,
    withinLooks: 150,
    scene: {
      ...remembering(THREE_MODELS.flatMap((model) => cards(2, { id: model, model }))),
      gates: UNPROTECTED,
    },
    begin({ fleet, crowd }) {
      let times = 0.5;
      let turn = 0;
      crowd.arrivals(
        'three',
        () => 60 * times,
        () => ({ ...PATIENT, model: THREE_MODELS[turn++ % 3] as string }),
      );
      return async () => {
        times = 1.5;
        await change(fleet, idsOf(fleet), { memoryUse: 0.97 });
      };
    },
  },
  {
    fault: 'all nodes are exchanged for others that have kept no prompt',
    raises: 'affinity-loss',
    // Emulated nodes keep no prompt: a turn that is thought to be cheap takes as long as the others.
    mayRaise: ['prediction-error'],
    warmLooks: 270,
    withinLooks: 150,
    scene: {
      emulated: [...texts(6, { id: 'old' }), ...texts(6, { id: 'new' })],
      node: () => ({ slots: 4, prefixBlocks: 10_000 }),
      // Reading is all of the work, four bytes in a millisecond: three seconds for each of these prompts.
      models: [
        { id: TEXT_MODEL, profile: { kind: 'llm', fixedMs: 0, prefillMsPerToken: 1, decodeMsPerToken: 0 } },
      ],
      placement: { prefixBlockBytes: 256 },
      gates: UNPROTECTED,
    },
    async begin({ fleet, started, crowd, sampleMs }) {
      const [old, fresh] = [idsOf(fleet).slice(0, 6), idsOf(fleet).slice(6)];
      for (const id of fresh) await cordon(started, id, true);
      const talks = 90;
      const everyMs = 120 * sampleMs;
      crowd.loop(talks, async (nth) => {
        const content = `${nth}. `.padEnd(12_000, `said by ${nth}, `);
        const body = { messages: [{ role: 'user', content }], max_tokens: 1 };
        await crowd.pause(everyMs * (0.5 + (nth % 10) / 10));
        await crowd.ask({ model: TEXT_MODEL, deadlineMs: 60_000, body });
      });
      return async () => {
        for (const id of fresh) await cordon(started, id, false);
        for (const id of old) await cordon(started, id, true);
      };
    },
  },
];

/** Faults of what is asked, by whom, and of what the gateway was told to do. */
const TRAFFIC_CASES: readonly SocketCase[] = [
  {
    fault: 'a stage of the overload ladder was set by hand and forgotten',
    raises: 'latched-gate',
    mayRaise: [],
    guilty: 'ladder',
    warmLooks: 60,
    withinLooks: 90,
    scene: { emulated: cards(4) },
    begin({ started, crowd }) {
      crowd.arrivals('mixed', () => 16, byClass(20, 50));
      const body = { stage: 3, seconds: 3_600, why: 'an incident', who: 'somebody' };
      return () => putLadder(started, body);
    },
  },
  {
    fault: 'load rises above capacity, no gate refuses and nobody adds nodes',
    raises: 'queue-growth',
    mayRaise: ['slo-drift', 'little-gap'],
    warmLooks: 70,
    withinLooks: 150,
    scene: { emulated: cards(4), gates: UNPROTECTED },
    begin({ crowd }) {
      let perS = 20;
      crowd.arrivals(
        'growing',
        () => perS,
        () => PATIENT,
      );
      return () => {
        perS = 80;
      };
    },
  },
  {
    fault: 'the lowest class has no share left, and waits to miss',
    raises: 'generational-starvation',
    mayRaise: ['queue-growth'],
    guilty: 'low',
    warmLooks: 0,
    withinLooks: 390,
    scene: {
      emulated: cards(6),
      classes: [
        { name: 'critical', weight: 100 },
        { name: 'normal', weight: 100 },
        { name: 'low', weight: 1, shareMin: 0.02 },
      ],
      gates: UNPROTECTED,
    },
    begin({ crowd }) {
      crowd.users(30, () => ({ ...PATIENT, className: 'normal' }));
      crowd.users(60, () => ({ model: IMAGE_MODEL, className: 'low', deadlineMs: 20_000 }));
      return () => undefined;
    },
  },
  {
    fault: 'low requests of ten seconds take all places, and none gives way',
    raises: 'priority-inversion',
    mayRaise: ['little-gap', 'queue-growth'],
    guilty: 'low',
    warmLooks: 60,
    withinLooks: 150,
    scene: { emulated: cards(3), gates: UNPROTECTED },
    begin({ crowd }) {
      crowd.arrivals(
        'critical',
        () => 2,
        () => ({ model: IMAGE_MODEL, className: 'critical', deadlineMs: 8_000 }),
      );
      return () => {
        crowd.users(12, () => ({ ...PATIENT, className: 'low', steps: 1_000, body: { n: 6 } }));
      };
    },
  },
  {
    fault: 'the only card of a rare model has more to do than it can',
    raises: 'wait-spread',
    mayRaise: ['queue-growth', 'slo-drift', 'little-gap', 'priority-inversion'],
    guilty: 'normal',
    warmLooks: 70,
    withinLooks: 270,
    scene: {
      emulated: [...cards(6), ...cards(1, { id: 'rare', model: RARE_MODEL, trueSpeed: 0.2 })],
      gates: UNPROTECTED,
    },
    begin({ crowd }) {
      let perS = 0.7;
      crowd.arrivals(
        'usual',
        () => 35,
        () => PATIENT,
      );
      crowd.arrivals(
        'rare',
        () => perS,
        () => ({ ...PATIENT, model: RARE_MODEL }),
      );
      return () => {
        perS = 8;
      };
    },
  },
  {
    fault: 'the only cards of one tenant become six times slower, and are not full',
    raises: 'latency-spread',
    mayRaise: [],
    guilty: 'branch',
    warmLooks: 310,
    withinLooks: 330,
    scene: {
      emulated: [...cards(4), ...cards(4, { id: 'branch', model: RARE_MODEL })],
      tenants: ['main', 'branch'].map((id) => ({ id, keys: [{ id, sha256: sha256Hex(`sk-${id}`) }] })),
      gates: UNPROTECTED,
    },
    begin({ fleet, crowd }) {
      const of = (tenant: string, model: string) => (): Wish => ({
        model,
        deadlineMs: 60_000,
        headers: { authorization: `Bearer sk-${tenant}` },
      });
      crowd.arrivals('main', () => 20, of('main', IMAGE_MODEL));
      crowd.arrivals('branch', () => 3, of('branch', RARE_MODEL));
      const own = idsOf(fleet).filter((id) => id.startsWith('branch'));
      return () => change(fleet, own, { slowFactor: 6 });
    },
  },
  {
    fault: 'half of the requests begin to call themselves critical',
    raises: 'label-drift',
    mayRaise: [],
    guilty: 'critical',
    warmLooks: 560,
    withinLooks: 270,
    scene: { emulated: cards(5) },
    begin({ crowd }) {
      let wish = byClass(20, 50);
      crowd.arrivals(
        'labels',
        () => 25,
        () => wish(),
      );
      return () => {
        wish = byClass(60, 25);
      };
    },
  },
  {
    fault: 'one stage of a workflow has a single card, and all of it waits there',
    raises: 'contention-heat',
    mayRaise: ['queue-growth'],
    guilty: 'draw',
    warmLooks: 0,
    withinLooks: 150,
    scene: {
      emulated: [...cards(4), ...cards(1, { id: 'big', model: RARE_MODEL })],
      gates: UNPROTECTED,
    },
    begin({ crowd }) {
      crowd.loop(30, async () => {
        const plan = await askAs(crowd, 'plan', '');
        const drawn = await askAs(crowd, 'draw', plan, RARE_MODEL);
        await askAs(crowd, 'check', drawn);
      });
      return () => undefined;
    },
  },
  {
    fault: 'requests of one size take times that differ by a factor of four',
    raises: 'prediction-error',
    mayRaise: ['node-variance', 'ownership-flapping', 'slo-drift'],
    warmLooks: 0,
    withinLooks: 390,
    scene: {
      emulated: cards(6),
      noiseSigma: 1.4,
      gates: { timeouts: 'off' },
    },
    begin({ crowd }) {
      crowd.users(4, () => PATIENT);
      return () => undefined;
    },
  },
  {
    fault: 'one in ten of what was served is missing in the books',
    raises: 'conservation-break',
    mayRaise: [],
    warmLooks: 60,
    withinLooks: 60,
    scene: { emulated: cards(4), start: { createScheduler: BOOKS.create } },
    begin({ crowd }) {
      crowd.users(3, () => PATIENT);
      return () => {
        BOOKS.oneIn = 10;
      };
    },
  },
  {
    fault: 'clients see a third of their answers broken off, of which the gateway knows nothing',
    raises: 'phantom-slo',
    mayRaise: [],
    warmLooks: 60,
    withinLooks: 60,
    scene: { emulated: cards(4), rum: { enabled: true } },
    begin({ started, crowd }) {
      let isCut = false;
      let turn = 0;
      crowd.loop(3, async () => {
        const { answer, ms } = await crowd.ask(PATIENT);
        const isBroken = isCut && turn++ % 3 === 0;
        const [token, id] = ['x-spillway-beacon', 'x-spillway-id'].map((name) => answer?.headers.get(name));
        const completionMs = Math.floor(ms);
        const seen = { outcome: isBroken ? 'failed' : 'ok', firstByteMs: completionMs, completionMs };
        await call(`${started.dataUrl}/spillway/v1/rum`, {
          body: JSON.stringify({ token, id, ...seen }),
          headers: { 'content-type': 'text/plain;charset=UTF-8' },
        });
      });
      return () => {
        isCut = true;
      };
    },
  },
];

/** Of hundred requests so many are critical and normal; the others are low. */
function byClass(critical: number, normal: number): () => Wish {
  let turn = 0;
  return () => {
    // A stride that shares no factor with a hundred: each of them comes once.
    turn = (turn + 37) % 100;
    const className = turn < critical ? 'critical' : turn < critical + normal ? 'normal' : 'low';
    return { ...PATIENT, className };
  };
}

/** Asks as a stage of a workflow, and returns the id of the request for the stage after it. */
async function askAs(crowd: Crowd, stage: string, parent: string, model = IMAGE_MODEL): Promise<string> {
  const headers = { 'x-spillway-stage': stage, ...(parent === '' ? {} : { 'x-spillway-parent': parent }) };
  const { answer } = await crowd.ask({ ...PATIENT, model, headers });
  return answer?.headers.get('x-spillway-id') ?? '';
}

export const SOCKET_CASES: readonly SocketCase[] = [...NODE_CASES, ...FLEET_CASES, ...TRAFFIC_CASES];
