import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { answerByScript, refusal, SERVED } from '../../../test/support/scripted-gateway.ts';
import { S } from '../../../test/support/specs.ts';
import { streamSpec } from '../../../test/support/stream-spec.ts';
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { JobEnd } from '../observer.ts';
import type { StreamSpec, UserSpec } from '../scenario/types.ts';
import { createClients, type RunClients } from './create-clients.ts';
import type { User, UserEnd } from './user.ts';

interface Told {
  readonly arrived: Map<number, User>;
  readonly ended: Map<
    number,
    { readonly kind: UserEnd['kind']; readonly tries: number; readonly at: MonoUs }
  >;
}

function clientsOf(
  streams: readonly StreamSpec[],
  spanUs: DurationUs,
  seed = 1,
): { readonly clients: RunClients; readonly told: Told } {
  const told: Told = { arrived: new Map(), ended: new Map() };
  const clients = createClients({
    streams,
    spanUs,
    seed,
    mixPerSecond: () => 40,
    bestServiceUs: (demand) => (demand.kind === 'work' ? demand.workUs / 8 : S),
    observer: {
      userArrived(user) {
        expect(told.arrived.has(user.index)).toBe(false);
        told.arrived.set(user.index, user);
      },
      userEnded(user, { kind }, at) {
        expect(told.ended.has(user.index)).toBe(false);
        expect(told.arrived.get(user.index)).toBe(user);
        told.ended.set(user.index, { kind, tries: user.tries, at });
      },
    },
  });
  return { clients, told };
}

function users(change: Partial<UserSpec>): Pick<StreamSpec, 'users'> {
  return { users: { ...streamSpec().users, ...change } };
}

/** One user, whose first try comes at `at`. */
function oneUser(change: Partial<StreamSpec>): ReturnType<typeof clientsOf> {
  const arrivals = { kind: 'poisson', rate: { kind: 'per-second', perSecond: 1_000 } } as const;
  const once = [{ from: 1_000, times: 0 }];
  for (let seed = 1; seed < 100; seed += 1) {
    const made = clientsOf([streamSpec({ arrivals, course: once, ...change })], S, seed);
    const [first] = answerByScript(made.clients, 1_000, () => ({ end: SERVED, afterUs: 0 })).requests;
    if (first !== undefined && made.told.arrived.size === 1)
      return clientsOf([streamSpec({ arrivals, course: once, ...change })], S, seed);
  }
  throw new Error('No seed gives one user');
}

describe('createClients', () => {
  test('a load is a share of what the fleet can do of the mix', () => {
    const load = streamSpec({ arrivals: { kind: 'poisson', rate: { kind: 'load', load: 2.5 } } });
    const { clients, told } = clientsOf([load], 100 * S);
    answerByScript(clients, 100 * S, () => ({ end: SERVED, afterUs: S }));
    expect(told.arrived.size).toBeGreaterThan(9_600);
    expect(told.arrived.size).toBeLessThan(10_400);
  });

  test('a spike multiplies the rate from its first instant to its last', () => {
    const course = [
      { from: 0, times: 0.1 },
      { from: 100 * S, times: 12 },
      { from: 200 * S, times: 0.1 },
    ];
    const { clients } = clientsOf([streamSpec({ course })], 300 * S);
    const { requests } = answerByScript(clients, 300 * S, () => ({ end: SERVED, afterUs: S }));
    const within = (from: number, until: number): number =>
      requests.filter(({ at }) => at >= from * S && at < until * S).length;
    expect(within(0, 100)).toBeLessThan(140);
    expect(within(100, 110)).toBeGreaterThan(1_080);
    expect(within(100, 200)).toBeGreaterThan(11_600);
    expect(within(200, 300)).toBeLessThan(140);
    expect(within(0, 300)).toBe(requests.length);
  });

  test('a user who is refused comes back with the same body until its tries are used up', () => {
    const { clients, told } = oneUser(users({ triesMax: 3, tellsCount: true }));
    const { requests } = answerByScript(clients, 100 * S, () => ({ end: refusal(undefined), afterUs: 0 }));
    expect(requests.map(({ task }) => [task.id, task.retryCount])).toEqual([
      [1, 0],
      [2, 1],
      [3, 2],
    ]);
    expect(new Set(requests.map(({ task }) => task.fingerprint)).size).toBe(1);
    expect(new Set(requests.map(({ task }) => task.workUs)).size).toBe(1);
    expect(told.ended.get(0)).toMatchObject({ kind: 'refused', tries: 3 });
  });

  test("each try's deadline counts from that try, and the client hangs up at it", () => {
    const { clients, told } = oneUser(users({ triesMax: 2, hangsUp: true }));
    const run = answerByScript(clients, 1_000 * S, () => undefined);
    expect(run.cancels.map(({ at }, index) => at - (run.requests[index]?.at ?? 0))).toEqual([60 * S, 60 * S]);
    for (const { task, at } of run.requests) expect(task.deadlineAt).toBe(at + 60 * S);
    expect(told.ended.get(0)).toMatchObject({ kind: 'gave-up', tries: 2 });
    expect(told.arrived.get(0)?.deadlineUs).toBe(60 * S);
  });

  test('who reads a stream does not hang up after the first byte, who waits for the whole does', () => {
    const answer = { end: SERVED, afterUs: 90 * S, firstByteUs: 10 * S };
    const streamed = oneUser({ ...users({ hangsUp: true }), isStream: true });
    expect(answerByScript(streamed.clients, 1_000 * S, () => answer).cancels).toEqual([]);
    expect(streamed.told.ended.get(0)?.kind).toBe('served');
    const whole = oneUser(users({ hangsUp: true }));
    expect(answerByScript(whole.clients, 1_000 * S, () => answer).cancels.length).toBe(1);
  });

  test.each([
    { told: 'a wait', hint: refusal(8 * S), least: 8, most: 10 },
    { told: 'no wait', hint: refusal(0), least: 1, most: 1.25 },
    {
      told: 'a wait that the jitter would stretch beyond a minute',
      hint: refusal(60 * S),
      least: 60,
      most: 60,
    },
  ])('a patient user who is told $told comes back in $least to $most s', ({ hint, least, most }) => {
    const { clients } = oneUser(users({ triesMax: 2, patientShare: 1 }));
    const [first, second] = answerByScript(clients, 100 * S, () => ({ end: hint, afterUs: 0 })).requests;
    const waitedS = ((second?.at ?? 0) - (first?.at ?? 0)) / S;
    expect(waitedS).toBeGreaterThanOrEqual(least);
    expect(waitedS).toBeLessThanOrEqual(most);
  });

  test.each([
    { told: 'more than a minute', hint: refusal(61 * S) },
    { told: 'that a retry cannot help', hint: refusal(undefined) },
  ])('a patient user who is told $told gives up', ({ hint }) => {
    const { clients, told } = oneUser(users({ triesMax: 4, patientShare: 1 }));
    answerByScript(clients, 1_000 * S, () => ({ end: hint, afterUs: 0 }));
    expect(told.ended.get(0)).toMatchObject({ kind: 'refused', tries: 1 });
  });

  test('a try that the gateway lost counts, and its user comes back after a thought', () => {
    const { clients, told } = oneUser(users({ triesMax: 2, patientShare: 1 }));
    const { requests } = answerByScript(clients, 100 * S, () => ({ end: { kind: 'lost' }, afterUs: 0 }));
    const waitedUs = (requests[1]?.at ?? 0) - (requests[0]?.at ?? 0);
    expect(waitedUs).toBeGreaterThanOrEqual(S);
    expect(waitedUs).toBeLessThanOrEqual(5 * S);
    expect(told.ended.get(0)).toMatchObject({ kind: 'failed', tries: 2 });
  });

  test('deadlines are never below a multiple of the best service time', () => {
    const classes = [{ name: 'critical', share: 1, deadlineUs: 3 * S }];
    const sizes = { kind: 'work', meanUs: 8 * S, sigma: 0 } as const;
    const { clients } = oneUser({ classes, sizes, serviceTimesMin: 4 });
    const [first] = answerByScript(clients, S, () => undefined).requests;
    expect((first?.task.deadlineAt ?? 0) - (first?.at ?? 0)).toBe(4 * S);
  });

  test('estimates and service times err around the truth without a bias', () => {
    const sizes = { kind: 'work', meanUs: 2 * S, sigma: 0.8 } as const;
    const stream = streamSpec({ sizes, estimateSigma: 0.5, serviceSigma: 0.2 });
    const { clients, told } = clientsOf([stream], 600 * S);
    const { requests } = answerByScript(clients, 600 * S, () => ({ end: SERVED, afterUs: 0 }));
    const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
    const truth = mean([...told.arrived.values()].map(({ workUs }) => workUs));
    expect(truth / (2 * S)).toBeCloseTo(1, 1);
    expect(mean(requests.map(({ task }) => task.workUs)) / truth).toBeCloseTo(1, 1);
    expect(mean(requests.map(({ noise }) => noise))).toBeCloseTo(1, 1);
    expect(new Set(requests.map(({ noise }) => noise)).size).toBeGreaterThan(requests.length * 0.99);
  });

  test('the same users come whatever becomes of them', () => {
    const stream = streamSpec({
      classes: [
        { name: 'critical', share: 0.2, deadlineUs: 10 * S },
        { name: 'low', share: 0.8, deadlineUs: 600 * S },
      ],
      tenants: { kind: 'many', prefix: 't', count: 50, zipf: 1 },
      models: [
        { id: 'a', share: 3 },
        { id: 'b', share: 1 },
      ],
      modelSwitch: 0.1,
      sizes: { kind: 'text', promptTokensMean: 500, promptSigma: 1, outputTokensMean: 200, outputSigma: 1 },
      estimateSigma: 0.5,
      serviceSigma: 0.2,
      ...users({ triesMax: 4, patientShare: 0.5, hangsUp: true, tellsCount: true }),
    });
    const firstTries = (script: Parameters<typeof answerByScript>[2]): unknown[] => {
      const { clients } = clientsOf([stream, { ...stream, name: 'other' }], 60 * S, 7);
      const { requests } = answerByScript(clients, 600 * S, script);
      return requests
        .filter(({ task }) => task.retryCount === 0)
        .map(({ at, demand, noise, task: { id: _id, ...task } }) => ({ at, demand, noise, task }));
    };
    const served = firstTries(() => ({ end: SERVED, afterUs: S }));
    const refused = firstTries(({ task }) => ({
      end: refusal(task.id % 3 === 0 ? undefined : S),
      afterUs: 0,
    }));
    const ignored = firstTries(() => undefined);
    expect(served.length).toBeGreaterThan(1_000);
    expect(refused).toEqual(served);
    expect(ignored).toEqual(served);
  });

  test('a stream tells stages of workflows by their shares, and is otherwise the same', () => {
    const plain = streamSpec({
      sizes: { kind: 'work', meanUs: S, sigma: 0.5 },
      estimateSigma: 0.5,
      serviceSigma: 0.2,
    });
    const telling = streamSpec({
      ...plain,
      stages: [
        { stage: { name: 'plan', parent: '' }, share: 1 },
        { stage: { name: 'draw', parent: 'plan' }, share: 3 },
      ],
    });
    const asked = (stream: StreamSpec): ReturnType<typeof answerByScript>['requests'] =>
      answerByScript(clientsOf([stream], 200 * S, 7).clients, 300 * S, () => ({ end: SERVED, afterUs: S }))
        .requests;
    const stages = asked(telling).map(({ task }) => task.stage);
    const drawing = stages.filter((stage) => stage?.name === 'draw' && stage.parent === 'plan').length;
    expect(drawing / stages.length).toBeCloseTo(0.75, 1);
    expect(stages).not.toContain(undefined);
    expect(asked(telling).map(({ at, noise, task }) => [at, noise, task.workUs])).toEqual(
      asked(plain).map(({ at, noise, task }) => [at, noise, task.workUs]),
    );
    expect(asked(plain).every(({ task }) => task.stage === undefined)).toBe(true);
  });

  test('a closed loop asks again only after an answer and a thought, and what it asks is the same at any speed', () => {
    const closed = streamSpec({
      arrivals: { kind: 'closed', users: 20, thinkMeanUs: 2 * S },
      sizes: { kind: 'work', meanUs: S, sigma: 1 },
    });
    const run = (serviceUs: DurationUs): ReturnType<typeof answerByScript>['requests'] => {
      const { clients } = clientsOf([closed], 100 * S);
      const { requests } = answerByScript(clients, 200 * S, () => ({ end: SERVED, afterUs: serviceUs }));
      const inFlight = requests.map(({ at }) =>
        requests.filter((one) => one.at <= at && at < one.at + serviceUs),
      );
      expect(Math.max(...inFlight.map(({ length }) => length))).toBeLessThanOrEqual(20);
      return requests;
    };
    const fast = run(2 * S);
    const slow = run(18 * S);
    // 20 people, each of whom takes 4 or 20 s for a round.
    expect(Math.abs(fast.length - 500)).toBeLessThan(50);
    expect(Math.abs(slow.length - 100)).toBeLessThan(20);
    const bodies = new Map(fast.map(({ task, demand }) => [task.fingerprint, demand]));
    for (const { task, demand } of slow) expect(demand).toEqual(bodies.get(task.fingerprint));
  });

  test('bursts come at their rate, and between them nobody', () => {
    const bursts = streamSpec({
      arrivals: { kind: 'on-off', rate: { kind: 'per-second', perSecond: 50 }, onUs: 2 * S, offUs: 8 * S },
    });
    const { clients } = clientsOf([bursts], 100 * S);
    const { requests } = answerByScript(clients, 100 * S, () => ({ end: SERVED, afterUs: 0 }));
    expect(requests.every(({ at }) => at % (10 * S) < 2 * S)).toBe(true);
    expect(Math.abs(requests.length - 1_000)).toBeLessThan(100);
  });

  test('every user who arrived ends once, those who are left when the run is over too', () => {
    const kind = fc.constantFrom<(JobEnd | undefined)[]>(
      SERVED,
      { kind: 'degraded', alternative: 0 },
      refusal(2 * S),
      refusal(undefined),
      { kind: 'failed', reason: 'node-failed', hint: { retryable: true, afterUs: 0 } },
      { kind: 'lost' },
      undefined,
    );
    const answers = fc.array(fc.tuple(kind, fc.nat(90)), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(answers, fc.nat(4), fc.boolean(), fc.integer(), (script, retries, hangsUp, seed) => {
        const open = streamSpec(users({ triesMax: 1 + retries, patientShare: 0.5, hangsUp }));
        const closed: StreamSpec = {
          ...open,
          name: 'closed',
          arrivals: { kind: 'closed', users: 5, thinkMeanUs: S },
        };
        const { clients, told } = clientsOf([open, closed], 10 * S, seed);
        answerByScript(clients, 40 * S, ({ task }) => {
          const [end, afterS] = script[task.id % script.length] ?? [undefined, 0];
          return end === undefined ? undefined : { end, afterUs: afterS * S };
        });
        clients.finish(40 * S);
        expect(told.ended.size).toBe(told.arrived.size);
        expect(clients.nextAt()).toBe(Number.POSITIVE_INFINITY);
      }),
      { numRuns: drawsOf(60) },
    );
  });
});
