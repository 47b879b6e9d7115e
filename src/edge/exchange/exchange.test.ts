/**
 * The exchange under every order of events: client, node and scheduler move one step at a time in a drawn order, and
 * whatever the order, the promises in the header of `exchange.ts` hold.
 */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { defaultGatewayConfig } from '../../core/config/index.ts';
import { NO_NEEDS } from '../../core/request/needs.ts';
import { type AttemptResult, NO_RETRY, type Outcome } from '../../core/request/outcome.ts';
import { NO_METRICS } from '../../ports/metrics-sink.ts';
import type { NodeCall, NodeResponseHandler, NodeTransport } from '../../ports/node-transport.ts';
import type { Gateway, TaskListener } from '../../runtime/contract.ts';
import { SILENT_LOG } from '../../runtime/log.ts';
import { BeaconDesk } from '../user-side/beacon-desk.ts';
import { UserSide } from '../user-side/user-side.ts';
import { parseOpenAi } from '../protocols/openai/parse.ts';
import type { ClientResponse } from './client-response.ts';
import { Exchange } from './exchange.ts';
import { AnswerCache } from '../cache/answer-cache.ts';
import { Stages } from '../stages.ts';
import { Spool } from './spool.ts';

const EARLY_MS = 1_000;
const ATTEMPTS_MAX = 3;
const CONFIG = defaultGatewayConfig({ server: { earlyCommitMs: EARLY_MS, keepAliveCommentMs: EARLY_MS } });

/** A connection that writes down what it gets, and objects to what must not happen. */
class FakeClient implements ClientResponse {
  readonly breaches: string[] = [];
  status = 0;
  body = '';
  state: 'open' | 'ended' | 'destroyed' | 'closed' = 'open';
  isSlow = false;
  #onClose = (): void => {};
  #onDrain = (): void => {};

  writeHead(status: number): void {
    if (this.status !== 0) this.breaches.push('a second head');
    if (this.state !== 'open') this.breaches.push(`a head after ${this.state}`);
    this.status = status;
  }

  sendLines(status: number, _lines: string, body: string): void {
    this.writeHead(status);
    this.end(body);
  }

  write(chunk: Uint8Array | string): boolean {
    if (this.status === 0) this.breaches.push('a body before its head');
    if (this.state !== 'open') this.breaches.push(`bytes after ${this.state}`);
    this.body += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    return !this.isSlow;
  }

  end(chunk?: Uint8Array | string): void {
    if (chunk !== undefined) this.write(chunk);
    if (this.state !== 'open') this.breaches.push(`an end after ${this.state}`);
    this.state = 'ended';
  }

  destroy(): void {
    if (this.state === 'open' || this.state === 'ended') this.state = 'destroyed';
  }

  /** The peer or the server closes the connection. */
  close(): void {
    if (this.state === 'open') this.state = 'closed';
    const told = this.#onClose;
    this.#onClose = () => {};
    told();
  }

  get isSent(): boolean {
    return this.state === 'ended';
  }

  drain(): void {
    this.isSlow = false;
    this.#onDrain();
  }

  pendingBytes(): number {
    return this.isSlow ? 100_000 : 0;
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }
}

interface FakeCall {
  readonly handler: NodeResponseHandler;
  hasHead: boolean;
  isOver: boolean;
  isAborted: boolean;
}

class World {
  readonly client = new FakeClient();
  readonly calls: FakeCall[] = [];
  readonly results: AttemptResult[] = [];
  readonly breaches: string[] = [];
  readonly labels: string[] = [];
  outcome: Outcome | undefined;
  assigned = 0;
  contentAtAssign: boolean[] = [];
  /** What the loop has not applied yet. */
  readonly #events: (() => void)[] = [];
  readonly #listener: { value?: TaskListener } = {};
  #state: 'queued' | 'running' | 'done' = 'queued';
  #permit = false;
  #isCancelled = false;
  #verdict: Outcome | undefined;
  readonly #abortFreesSlot: boolean;

  constructor(stream: boolean, abortFreesSlot: boolean) {
    this.#abortFreesSlot = abortFreesSlot;
    const parsed = parseOpenAi('chat', Buffer.from(JSON.stringify({ model: 'm', messages: [{}], stream })));
    if (parsed.kind !== 'request') throw new Error(parsed.detail);
    const gateway = this.#gateway();
    const metrics = {
      ...NO_METRICS,
      requestEnded: (...args: unknown[]) => void this.labels.push(String(args[2])),
    };
    const context = {
      gateway,
      transport: this.#transport(),
      metrics,
      spool: new Spool(() => CONFIG.server, gateway.now, metrics),
      cache: new AnswerCache({ config: () => CONFIG.cache, now: gateway.now, compare: () => {} }),
      log: SILENT_LOG,
      beacons: new BeaconDesk({
        config: () => CONFIG.rum,
        now: () => 0,
        userSide: new UserSide(metrics),
        metrics,
      }),
      stages: new Stages(),
      waitingNote: () => 'waiting',
    };
    const submit = {
      className: 'normal',
      tenant: 't',
      model: 'm',
      needs: NO_NEEDS,
      workUs: 1,
      firstByteWorkUs: 1,
      bytes: 1,
      deadlineUs: 1e6,
      deadlineWished: false,
      stream,
      fingerprint: '',
      receivedAt: 0,
    };
    const spec = {
      request: parsed.request,
      submit,
      forwarded: [],
      requestId: '',
      nodeVisible: true,
      cacheKey: '',
    };
    new Exchange(context, spec, this.client).start();
  }

  #gateway(): Gateway {
    const gateway = {
      config: CONFIG,
      limitsOf: () => undefined,
      now: () => 0,
      submit: (_spec: unknown, listener: TaskListener) => {
        this.#listener.value = listener;
        return { taskId: 1, publicId: 'r1' };
      },
      cancel: () => {
        this.#events.push(() => this.#applyCancel());
      },
      attemptSent: () => {
        if (!this.#permit) this.breaches.push('sent without a permit');
      },
      attemptFirstByte: () => {
        if (!this.#permit) this.breaches.push('first byte without a permit');
      },
      attemptEnded: (_id: number, result: AttemptResult) => {
        if (!this.#permit) this.breaches.push(`a permit released twice: ${result.kind}`);
        this.#permit = false;
        this.#checkEnd(result);
        this.results.push(result);
        this.#events.push(() => this.#applyEnd(result));
      },
      noteFailure: () => {},
      learn: () => {},
    };
    return gateway as unknown as Gateway;
  }

  /** What an end may not say at this moment. */
  #checkEnd(result: AttemptResult): void {
    const call = this.calls.length === this.assigned ? this.calls.at(-1) : undefined;
    if (result.kind === 'aborted' && !this.#abortFreesSlot && call !== undefined && !call.isOver) {
      this.breaches.push('a slot released while its engine is busy');
    }
    if (result.kind === 'failed' && result.retryable && this.client.body.includes('"content":"c"')) {
      this.breaches.push('a retry asked for after content');
    }
  }

  #transport(): NodeTransport {
    const send = (_id: string, _request: unknown, handler: NodeResponseHandler): NodeCall => {
      const call: FakeCall = { handler, hasHead: false, isOver: false, isAborted: false };
      this.calls.push(call);
      const abort = (): void => {
        call.isAborted = true;
      };
      return { abort, resume: () => {}, setIdle: () => {} };
    };
    return { send } as unknown as NodeTransport;
  }

  #applyCancel(): void {
    if (this.#state === 'done' || this.#isCancelled) return;
    this.#isCancelled = true;
    if (this.#state === 'queued') this.#finish({ kind: 'cancelled' });
    else if (this.#permit) this.#listener.value?.abort();
  }

  #applyEnd(result: AttemptResult): void {
    if (this.#state === 'done') return;
    if (this.#verdict !== undefined) this.#finish(this.#verdict);
    else if (result.kind === 'ok') this.#finish({ kind: 'served' });
    else if (result.kind === 'declined') this.#finish({ kind: 'failed', reason: 'declined', hint: NO_RETRY });
    else if (this.#isCancelled || result.kind === 'aborted') this.#finish({ kind: 'cancelled' });
    else if (result.retryable && this.assigned < ATTEMPTS_MAX) this.#state = 'queued';
    else this.#finish({ kind: 'failed', reason: 'node-failed', hint: NO_RETRY });
  }

  #finish(outcome: Outcome): void {
    this.#state = 'done';
    this.outcome = outcome;
    this.#listener.value?.finished(outcome);
  }

  /** The loop applies its oldest event. */
  loop(): void {
    this.#events.shift()?.();
  }

  assign(): void {
    if (this.#state !== 'queued') return;
    this.#state = 'running';
    this.#permit = true;
    this.assigned++;
    this.contentAtAssign.push(this.client.body.includes('"content":"c"'));
    const abortFreesSlot = this.#abortFreesSlot;
    this.#listener.value?.assigned({
      nodeId: 'n',
      attempt: this.assigned,
      upstreamModel: '',
      abortFreesSlot,
      silence: { firstByteUs: 0, idleUs: 0 },
    });
  }

  evict(): void {
    if (this.#state === 'queued') this.#finish({ kind: 'evicted', reason: 'wait-expired', hint: NO_RETRY });
  }

  /** The deadline passes: the scheduler aborts, and decides at once or when the attempt has ended. */
  timeOut(isPatient: boolean): void {
    if (this.#state !== 'running' || !this.#permit) return;
    this.#verdict = { kind: 'failed', reason: 'node-timeout', hint: NO_RETRY };
    this.#listener.value?.abort();
    if (!isPatient && this.#state === 'running') this.#finish(this.#verdict);
  }

  /** Something happens on the newest or the oldest call that is still open. */
  node(event: NodeEvent, isNewest: boolean): void {
    const open = this.calls.filter((call) => !call.isOver);
    const call = isNewest ? open.at(-1) : open[0];
    if (call === undefined) return;
    if (call.isAborted) {
      call.isOver = true;
      call.handler.onFault('aborted', '');
      return;
    }
    if (event.kind === 'head' && !call.hasHead) {
      call.hasHead = true;
      call.handler.onSent();
      call.handler.onHead(event.status, ['content-type', event.type]);
    } else if (event.kind === 'data' && call.hasHead) call.handler.onData(Buffer.from(event.text));
    else if (event.kind === 'end' && call.hasHead) {
      call.isOver = true;
      call.handler.onEnd();
    } else if (event.kind === 'fault') {
      call.isOver = true;
      call.handler.onFault('reset', '');
    }
  }

  /** Lets everything come to its end: nodes fall, the loop runs dry, the client closes. */
  settle(): void {
    for (let i = 0; i < 40; i++) {
      this.node({ kind: 'fault' }, false);
      this.loop();
      this.evict();
    }
    this.client.close();
    for (let i = 0; i < 10; i++) this.loop();
    for (let i = 0; i < 10; i++) this.node({ kind: 'fault' }, false);
    for (let i = 0; i < 10; i++) this.loop();
  }
}

type NodeEvent =
  | { readonly kind: 'head'; readonly status: number; readonly type: string }
  | { readonly kind: 'data'; readonly text: string }
  | { readonly kind: 'end' }
  | { readonly kind: 'fault' };

const JSON_TYPE = 'application/json';
const SSE_TYPE = 'text/event-stream';
const ROLE = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n';
const CONTENT = 'data: {"choices":[{"delta":{"content":"c"},"finish_reason":null}]}\n\n';
const FINISH = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
const DONE = 'data: [DONE]\n\n';
const WHOLE = '{"choices":[{"message":{"content":"c"}}]}';

const nodeEvent: fc.Arbitrary<NodeEvent> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<NodeEvent>({ kind: 'head', status: 200, type: SSE_TYPE }) },
  { weight: 3, arbitrary: fc.constant<NodeEvent>({ kind: 'head', status: 200, type: JSON_TYPE }) },
  fc
    .constantFrom(400, 404, 429, 500, 503, 302)
    .map((status): NodeEvent => ({ kind: 'head', status, type: JSON_TYPE })),
  {
    weight: 8,
    arbitrary: fc
      .constantFrom(
        ROLE,
        CONTENT,
        FINISH,
        DONE,
        WHOLE,
        '{"error":1}',
        'garbage\n\n',
        CONTENT.slice(0, 9),
        'data: {"error":{}}\n\n',
      )
      .map((text): NodeEvent => ({ kind: 'data', text })),
  },
  { weight: 2, arbitrary: fc.constant<NodeEvent>({ kind: 'end' }) },
  fc.constant<NodeEvent>({ kind: 'fault' }),
);

type Step = (world: World) => void;

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>((world) => world.assign()) },
  { weight: 4, arbitrary: fc.constant<Step>((world) => world.loop()) },
  {
    weight: 12,
    arbitrary: fc.tuple(nodeEvent, fc.boolean()).map(
      ([event, isNewest]): Step =>
        (world) =>
          world.node(event, isNewest),
    ),
  },
  fc.constant<Step>((world) => world.client.close()),
  fc.constant<Step>((world) => world.evict()),
  fc.boolean().map(
    (isPatient): Step =>
      (world) =>
        world.timeOut(isPatient),
  ),
  fc.constant<Step>(() => void vi.advanceTimersByTime(EARLY_MS)),
  fc.constant<Step>((world) => {
    world.client.isSlow = true;
  }),
  fc.constant<Step>((world) => world.client.drain()),
);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** All that must hold at the end, whatever happened before. */
function expectPromisesKept(world: World, clientStayed: boolean): void {
  expect(world.breaches, 'calls to the gateway').toEqual([]);
  expect(world.client.breaches, 'writes to the client').toEqual([]);
  expect(world.results.length, 'one end per assignment').toBe(world.assigned);
  expect(world.outcome, 'an outcome').toBeDefined();
  expect(world.labels.length, 'counted once').toBe(1);
  expect(
    world.calls.every((call) => call.isOver || call.isAborted),
    'no call is left open',
  ).toBe(true);
  expect(
    world.contentAtAssign.every((hasContent) => !hasContent),
    'no retry after content',
  ).toBe(true);
  const { body, state, status } = world.client;
  // A line of its own in a stream: inside a broken event, or in a node's own refusal, the same letters say nothing.
  if (status === 200 && /^data: \[DONE\]$/m.test(body))
    expect(world.results.at(-1)?.kind, 'goodbye only on success').toBe('ok');
  if (world.outcome?.kind === 'served' && clientStayed) expect(state).toBe('ended');
  if (clientStayed) expect(['ended', 'destroyed'], 'the client is answered').toContain(state);
  expect(vi.getTimerCount(), 'no timer is left').toBe(0);
}

describe('Exchange', () => {
  it.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])(
    'keeps its promises in every order of events (stream %s, engine can abort %s)',
    (stream, abortFreesSlot) => {
      fc.assert(
        fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
          const world = new World(stream, abortFreesSlot);
          for (const run of steps) run(world);
          const clientStayed = world.client.state !== 'closed';
          world.settle();
          expectPromisesKept(world, clientStayed);
        }),
        { numRuns: drawsOf(1_500) },
      );
    },
  );

  it('carries a whole stream to its end', () => {
    const world = new World(true, true);
    world.assign();
    world.node({ kind: 'head', status: 200, type: SSE_TYPE }, true);
    for (const text of [ROLE, CONTENT, FINISH, DONE]) world.node({ kind: 'data', text }, true);
    world.node({ kind: 'end' }, true);
    world.loop();
    expect(world.client.body).toBe(ROLE + CONTENT + FINISH + DONE);
    expect(world.labels).toEqual(['served']);
    expectPromisesKept(world, true);
  });

  it('stops the node in the turn in which the client leaves', () => {
    const world = new World(true, true);
    world.assign();
    world.client.close();
    expect(world.calls[0]?.isAborted).toBe(true);
    expect(world.results).toEqual([{ kind: 'aborted' }]);
    world.settle();
    expectPromisesKept(world, false);
  });

  it('takes a client that leaves while it waits off the queue', () => {
    const world = new World(false, true);
    world.client.close();
    world.loop();
    expect(world.outcome).toEqual({ kind: 'cancelled' });
    expect(world.labels).toEqual(['cancelled']);
    expectPromisesKept(world, false);
  });

  it('starts nothing for a client that left before the assignment came', () => {
    const world = new World(true, true);
    world.client.close();
    world.assign();
    expect(world.calls).toEqual([]);
    world.settle();
    expectPromisesKept(world, false);
  });
});
