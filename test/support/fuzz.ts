/** Random event sequences over a small world, for properties that must hold whatever happens. */
import fc from 'fast-check';
import type { BoundsConfig } from '../../src/core/config/types.ts';
import type { Alternative } from '../../src/core/degrade/alternative.ts';
import type { AttemptResult, FailureKind } from '../../src/core/request/outcome.ts';
import { type Capability, type Needs, NO_NEEDS } from '../../src/core/request/needs.ts';
import type { MonoUs, TaskId } from '../../src/base/units.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { NodeMemory, NodeSpec, SchedulerEvent } from '../../src/core/scheduler/events.ts';
import { nodeSpec, S, taskSpec } from './specs.ts';

const NODE_COUNT = 5;

/** Two plain nodes, one with more slots and another model, one that batches, one with a short context. */
export const NODES: readonly NodeSpec[] = [
  nodeSpec('n0'),
  nodeSpec('n1', { hardware: 'T4' }),
  nodeSpec('n2', { slots: 3, models: [{ model: 'm' }, { model: 'other' }] }),
  nodeSpec('n3', { slots: 0, batching: true, heartbeats: true, models: [{ model: 'other' }] }),
  nodeSpec('n4', {
    slots: 2,
    hardware: 'A100',
    models: [{ model: 'm', contextTokensMax: 1_000, capabilities: [] }],
  }),
];

/** Bounds small enough that a short sequence meets them. */
export const SMALL_BOUNDS: BoundsConfig = {
  tasksMax: 12,
  bytesMax: 4_000,
  workMsMax: 40_000,
  classShareMax: 0.75,
  tenantShareMax: 0.6,
};

export type Step =
  | {
      readonly kind: 'submit';
      readonly className: string;
      readonly tenant: string;
      readonly model: string;
      readonly workUs: number;
      readonly bytes: number;
      readonly ttlUs: number;
      readonly wished: boolean;
      readonly stream: boolean;
      readonly fingerprint: string;
      readonly needs: Partial<Needs>;
      readonly alternatives: readonly Alternative[] | undefined;
      readonly tokens: number;
      readonly promptTokens: number;
    }
  | { readonly kind: 'cancel' | 'sent' | 'first-byte'; readonly pick: number }
  | { readonly kind: 'end'; readonly pick: number; readonly result: AttemptResult }
  | { readonly kind: 'register'; readonly node: number; readonly memory?: NodeMemory }
  | { readonly kind: 'remove' | 'heartbeat'; readonly node: number }
  | { readonly kind: 'probe' | 'cordon' | 'drain'; readonly node: number; readonly on: boolean }
  | {
      readonly kind: 'reading';
      readonly node: number;
      readonly waiting: number | undefined;
      readonly cacheUse: number | undefined;
    }
  | { readonly kind: 'survival'; readonly shedClasses: number }
  | { readonly kind: 'shutdown' }
  | { readonly kind: 'wait'; readonly durationUs: number };

const FAILURES: readonly FailureKind[] = [
  'connect',
  'reset',
  'timeout',
  'refused',
  'server-error',
  'protocol',
];

/** Numbers that no sane caller sends: whatever is done with them, the books must stay right. */
const ABSURD: readonly number[] = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -1,
  0,
  0.5,
  1e308,
  5e-324,
];

function number(sane: fc.Arbitrary<number>, withAbsurd: boolean): fc.Arbitrary<number> {
  if (!withAbsurd) return sane;
  return fc.oneof({ arbitrary: sane, weight: 4 }, { arbitrary: fc.constantFrom(...ABSURD), weight: 1 });
}

export interface FuzzOptions {
  /** Whether numbers from outside may be NaN, infinite, negative or huge. */
  readonly absurd: boolean;
  readonly shutdown: boolean;
  readonly maxLength: number;
}

export function resultArbitrary(absurd: boolean): fc.Arbitrary<AttemptResult> {
  const tokens = number(fc.nat(5_000), absurd);
  return fc.oneof(
    { arbitrary: fc.constant<AttemptResult>({ kind: 'ok' }), weight: 4 },
    {
      arbitrary: fc
        .record({ promptTokens: tokens, outputTokens: tokens })
        .map((usage): AttemptResult => ({ kind: 'ok', usage })),
      weight: 2,
    },
    { arbitrary: fc.constant<AttemptResult>({ kind: 'declined' }), weight: 1 },
    { arbitrary: fc.constant<AttemptResult>({ kind: 'aborted' }), weight: 1 },
    {
      arbitrary: fc
        .record({ outputTokens: tokens })
        .map((passed): AttemptResult => ({ kind: 'aborted', passed })),
      weight: 1,
    },
    {
      arbitrary: fc
        .record({
          failure: fc.constantFrom(...FAILURES),
          retryable: fc.boolean(),
          nodeRetryAfterUs: number(fc.nat(10 * S), absurd),
        })
        .map((failed): AttemptResult => ({ kind: 'failed', ...failed })),
      weight: 4,
    },
  );
}

function alternativesArbitrary(absurd: boolean): fc.Arbitrary<readonly Alternative[]> {
  const workUs = number(fc.integer({ min: 1, max: 2 * S }), absurd);
  const lesser = fc.record({
    how: fc.constantFrom('model' as const, 'quality' as const),
    name: fc.constant('lesser'),
    model: fc.constantFrom('m', 'other', 'unknown'),
    needs: fc.constant(NO_NEEDS),
    workUs,
    firstByteWorkUs: workUs,
  });
  const free = fc.record({ how: fc.constantFrom('cache' as const, 'default' as const) });
  return fc.array(fc.oneof(lesser, lesser, free), { maxLength: 3 });
}

function submitArbitrary(absurd: boolean): fc.Arbitrary<Step> {
  const capabilities: readonly (readonly Capability[])[] = [[], [], [], ['vision']];
  return fc.record({
    kind: fc.constant('submit' as const),
    className: fc.constantFrom('critical', 'normal', 'low', 'nonsense'),
    tenant: fc.constantFrom('a', 'b', 'c'),
    model: fc.constantFrom('m', 'm', 'm', 'm', 'other', 'other', 'unknown'),
    workUs: number(fc.integer({ min: 1, max: 8 * S }), absurd),
    bytes: number(fc.nat(900), absurd),
    ttlUs: number(fc.integer({ min: -S, max: 60 * S }), absurd),
    wished: fc.boolean(),
    stream: fc.boolean(),
    fingerprint: fc.constantFrom('', '', 'x', 'y'),
    needs: fc.record({
      contextTokens: number(fc.constantFrom(0, 0, 500, 5_000), absurd),
      capabilities: fc.constantFrom(...capabilities),
    }),
    alternatives: fc.option(alternativesArbitrary(absurd), { nil: undefined }),
    tokens: number(fc.nat(900), absurd),
    promptTokens: number(fc.nat(400), absurd),
  });
}

function memoryArbitrary(absurd: boolean): fc.Arbitrary<NodeMemory> {
  return fc.record({
    cordoned: fc.constant(false),
    draining: fc.constant(false),
    ejectedForUs: number(fc.nat(20 * S), absurd),
    ejections: number(fc.nat(8), absurd),
    rates: fc.array(
      fc.record({
        model: fc.constantFrom('', 'm', 'other'),
        rate: number(fc.constantFrom(0.1, 1, 3), absurd),
        observations: number(fc.nat(50), absurd),
      }),
      { maxLength: 2 },
    ),
  });
}

export function stepArbitrary(options: FuzzOptions): fc.Arbitrary<Step> {
  const { absurd } = options;
  const node = fc.nat(NODE_COUNT);
  const on = fc.boolean();
  const arms: { arbitrary: fc.Arbitrary<Step>; weight: number }[] = [
    { arbitrary: submitArbitrary(absurd), weight: 18 },
    {
      arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'sent', 'first-byte'), pick: fc.nat() }),
      weight: 4,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant('end' as const),
        pick: fc.nat(),
        result: resultArbitrary(absurd),
      }),
      weight: 12,
    },
    { arbitrary: fc.record({ kind: fc.constant('register' as const), node }), weight: 2 },
    {
      arbitrary: fc.record({ kind: fc.constant('register' as const), node, memory: memoryArbitrary(absurd) }),
      weight: 2,
    },
    { arbitrary: fc.record({ kind: fc.constantFrom('remove', 'heartbeat'), node }), weight: 2 },
    { arbitrary: fc.record({ kind: fc.constantFrom('probe', 'cordon', 'drain'), node, on }), weight: 3 },
    {
      arbitrary: fc.record({
        kind: fc.constant('reading' as const),
        node,
        waiting: fc.option(number(fc.nat(3), absurd), { nil: undefined }),
        cacheUse: fc.option(number(fc.constantFrom(0, 0.5, 0.87, 0.95), absurd), { nil: undefined }),
      }),
      weight: 2,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant('survival' as const),
        shedClasses: number(fc.nat(3), absurd),
      }),
      weight: 1,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant('wait' as const),
        durationUs: fc.integer({ min: 1, max: 4 * S }),
      }),
      weight: 8,
    },
  ];
  if (options.shutdown) arms.push({ arbitrary: fc.constant<Step>({ kind: 'shutdown' }), weight: 1 });
  return fc.oneof(...arms);
}

/** Sequences that begin with some nodes, or most of the run would be refusals. */
export function sequenceArbitrary(options: FuzzOptions): fc.Arbitrary<readonly Step[]> {
  const begin = fc
    .subarray([0, 1, 2, 3, 4], { minLength: 1 })
    .map((nodes): Step[] => nodes.map((node) => ({ kind: 'register', node })));
  return fc
    .tuple(begin, fc.array(stepArbitrary(options), { maxLength: options.maxLength, size: 'max' }))
    .map(([first, rest]) => [...first, ...rest]);
}

/** What the events are fed to: a scheduler or a policy under watch. */
export interface FuzzWorld {
  readonly now: MonoUs;
  /** By task, what is under way. */
  readonly permits: ReadonlyMap<TaskId, unknown>;
  apply(event: SchedulerEvent): void;
  submit(task: TaskSpec): unknown;
  end(taskId: TaskId, result: AttemptResult): void;
  advance(durationUs: number): void;
}

/** Task numbers are given in order; a pick names any number so far, one too many included. */
export class FuzzPlayer {
  readonly world: FuzzWorld;
  #nextId = 1;

  constructor(world: FuzzWorld) {
    this.world = world;
  }

  play(steps: readonly Step[], afterEach: () => void = () => {}): void {
    for (const step of steps) {
      this.step(step);
      afterEach();
    }
  }

  step(step: Step): void {
    const { world } = this;
    switch (step.kind) {
      case 'submit':
        return this.#submit(step);
      case 'cancel':
        return world.apply({ kind: 'cancel', taskId: this.#any(step.pick) });
      case 'sent':
        return world.apply({ kind: 'attempt-sent', taskId: this.#any(step.pick) });
      case 'first-byte':
        return world.apply({ kind: 'attempt-first-byte', taskId: this.#any(step.pick) });
      case 'end':
        return this.#end(step.pick, step.result);
      case 'survival':
      case 'shutdown':
        return world.apply(step);
      case 'wait':
        return world.advance(step.durationUs);
      default:
        return this.#node(step);
    }
  }

  #submit({ kind: _, ttlUs, needs, wished, ...rest }: Extract<Step, { kind: 'submit' }>): void {
    const base = taskSpec(this.#nextId++);
    const firstByteWorkUs = rest.workUs / 3;
    this.world.submit({
      ...base,
      ...rest,
      firstByteWorkUs,
      deadlineWished: wished,
      needs: { ...base.needs, ...needs },
      deadlineAt: this.world.now + ttlUs,
    });
  }

  /** Mostly a permit that is out; sometimes one that is not, which must change nothing. */
  #end(pick: number, result: AttemptResult): void {
    const out = [...this.world.permits.keys()];
    const chosen = pick % 8 === 0 ? this.#any(pick >> 3) : out[(pick >> 3) % Math.max(1, out.length)];
    if (chosen !== undefined) this.world.end(chosen, result);
  }

  #node(step: Extract<Step, { readonly node: number }>): void {
    const { world } = this;
    const nodeId = `n${step.node}`;
    switch (step.kind) {
      case 'register': {
        const node = NODES[step.node];
        if (node === undefined) return;
        return world.apply({
          kind: 'node-registered',
          node,
          ...(step.memory === undefined ? {} : { memory: step.memory }),
        });
      }
      case 'remove':
        return world.apply({ kind: 'node-removed', nodeId });
      case 'heartbeat':
        return world.apply({ kind: 'node-heartbeat', nodeId });
      case 'probe':
        return world.apply({ kind: 'node-probed', nodeId, alive: step.on });
      case 'cordon':
        return world.apply({ kind: 'node-cordoned', nodeId, cordoned: step.on });
      case 'drain':
        return world.apply({ kind: 'node-draining', nodeId, draining: step.on });
      case 'reading': {
        const { waiting, cacheUse } = step;
        const reading = {
          ...(waiting === undefined ? {} : { waiting }),
          ...(cacheUse === undefined ? {} : { cacheUse }),
        };
        return world.apply({ kind: 'node-reading', nodeId, reading });
      }
    }
  }

  #any(pick: number): number {
    return 1 + (pick % this.#nextId);
  }
}
