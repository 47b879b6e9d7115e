/** What runs are made of: fleets, clients and policies as a scenario names them. */
import { createPrng } from '../base/prng.ts';
import type { DurationUs, ModelId, MonoUs, Rate } from '../base/units.ts';
import { NO_NEEDS } from '../core/request/index.ts';
import { createScheduler } from '../core/scheduler/index.ts';
import type { Clients } from './clients/clients.ts';
import type { User, UserObserver } from './clients/user.ts';
import type { Demand } from './machines/machine.ts';
import { SlotMachine } from './machines/slot-machine.ts';
import type { Policy } from './policies/policy.ts';
import type { NodeGroup, PolicySpec, StreamSpec } from './scenario/types.ts';
import { SimNode } from './sim-node.ts';

/** What is asked of one model, as a sample. */
export interface MixPart {
  readonly model: ModelId;
  readonly share: number;
  readonly demands: readonly Demand[];
}

export interface Parts {
  buildFleet(
    groups: readonly NodeGroup[],
    options: { readonly seed: number; readonly mix: readonly MixPart[] },
  ): readonly SimNode[];
  sampleMix(stream: StreamSpec, count: number, seed: number): readonly Demand[];
  fleetCapacity(
    nodes: readonly SimNode[],
    mix: readonly MixPart[],
  ): { readonly requestsPerSecond: number; readonly workUsPerUs: Rate };
  createClients(options: {
    readonly streams: readonly StreamSpec[];
    readonly spanUs: DurationUs;
    readonly seed: number;
    readonly mixPerSecond: (stream: StreamSpec) => number;
    readonly bestServiceUs: (demand: Demand) => DurationUs;
    readonly observer: UserObserver;
  }): Clients & { finish?(now: MonoUs): void };
  createPolicy(spec: Pick<PolicySpec, 'policy' | 'config' | 'options'>, seed: number): Policy;
}

function workOf(demand: Demand): number {
  return demand.kind === 'work' ? demand.workUs : 1_000_000;
}

function meanOf(stream: StreamSpec): number {
  return stream.sizes.kind === 'work' ? stream.sizes.meanUs : 1_000_000;
}

/** Constant sizes on slots, Poisson arrivals, one try each. */
export const PARTS: Parts = {
  buildFleet: (groups) =>
    groups
      .flatMap((group) => Array.from({ length: group.count }, (_, at) => ({ group, at })))
      .map(({ group, at }, index) => {
        const slots = group.engine.kind === 'slots' ? group.engine.slots : 1;
        const machine = new SlotMachine({ slots, serviceUs: (demand) => workOf(demand) / group.speed });
        const models = group.models.map((model) => ({ model }));
        const { rttUs, beatUs, heartbeats, canAbort } = group;
        const spec = {
          id: `${group.name}-${at + 1}`,
          models,
          slots,
          batching: false,
          hardware: '',
          labels: {},
        };
        return new SimNode({ spec: { ...spec, heartbeats, canAbort }, machine, rttUs, beatUs }, index);
      }),
  sampleMix: (stream, count) =>
    Array.from({ length: count }, () => ({ kind: 'work', workUs: meanOf(stream) })),
  fleetCapacity(nodes, mix) {
    const demands = mix.flatMap((part) => part.demands);
    const requestsPerSecond = nodes.reduce((sum, { machine }) => sum + machine.perSecond(demands), 0);
    const workUs = demands.reduce((sum, demand) => sum + workOf(demand), 0) / demands.length;
    return { requestsPerSecond, workUsPerUs: (requestsPerSecond * workUs) / 1e6 };
  },
  createClients({ streams, spanUs, seed, mixPerSecond, observer }) {
    const prng = createPrng(seed);
    const out = new Map<number, User>();
    const next = streams.map(() => 0);
    let index = 0;
    const gap = (stream: StreamSpec, at: MonoUs): number => {
      const { arrivals } = stream;
      const rate = 'rate' in arrivals ? arrivals.rate : { kind: 'load' as const, load: 1 };
      const times = stream.course.findLast(({ from }) => from <= at)?.times ?? 1;
      const perSecond = rate.kind === 'load' ? rate.load * mixPerSecond(stream) : rate.perSecond;
      return Math.ceil((-Math.log(1 - prng.nextRatio()) * 1e6) / (perSecond * times));
    };
    for (const [i, stream] of streams.entries()) next[i] = gap(stream, 0);
    const nextAt = (): MonoUs => {
      const at = Math.min(...next);
      return at >= spanUs ? Number.POSITIVE_INFINITY : at;
    };
    return {
      nextAt,
      advance(now, sink) {
        const at = next.indexOf(now);
        const stream = streams[at] as StreamSpec;
        next[at] = now + gap(stream, now);
        let roll = prng.nextRatio();
        const ofClass = stream.classes.find(({ share }) => (roll -= share) < 0) ?? stream.classes[0];
        const { name, deadlineUs } = ofClass as StreamSpec['classes'][number];
        const workUs = meanOf(stream);
        const demand: Demand = { kind: 'work', workUs };
        const model = stream.models[0]?.id ?? 'm';
        const tenant = stream.tenants.kind === 'one' ? stream.tenants.id : stream.tenants.prefix;
        const user: User = {
          index: index++,
          stream: at,
          className: name,
          tenant,
          model,
          demand,
          workUs,
          deadlineUs,
          arrivedAt: now,
          tries: 1,
        };
        out.set(index, user);
        observer.userArrived?.(user, now);
        sink.submit({
          demand,
          noise: 1,
          user,
          task: {
            id: index,
            className: name,
            tenant,
            model,
            needs: NO_NEEDS,
            workUs,
            firstByteWorkUs: workUs,
            bytes: 100,
            deadlineAt: now + deadlineUs,
            deadlineWished: true,
            stream: stream.isStream,
            fingerprint: '',
          },
        });
      },
      outcome(taskId, { kind }, now) {
        const user = out.get(taskId) as User;
        out.delete(taskId);
        const isRefused = kind === 'rejected' || kind === 'evicted' || kind === 'cancelled';
        const end = kind === 'lost' ? 'failed' : isRefused ? 'refused' : kind;
        observer.userEnded?.(user, { kind: end }, now);
      },
    };
  },
  createPolicy: ({ config }, seed) => createScheduler({ ...config, seed }),
};
