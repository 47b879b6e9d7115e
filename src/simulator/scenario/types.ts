/**
 * A scenario as the simulator runs it: complete, checked, every quantity with its unit in its name. Scenario files (YAML)
 * are read and checked into this; see `docs/reference/scenarios.md` for what people write.
 */
import type { ClassName, DurationUs, ModelId, MonoUs, Ratio, TenantId, Tokens } from '../../base/units.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';
import type { TaskStage } from '../../core/request/task.ts';

export interface Scenario {
  readonly name: string;
  /** What it shows, for people. */
  readonly about: string;
  /** Users arrive from 0 to here. */
  readonly spanUs: DurationUs;
  /** How long afterwards those who are left are waited for. */
  readonly drainUs: DurationUs;
  /** What counts: arrivals from here to there, and for goodput the work done between. */
  readonly window: { readonly from: MonoUs; readonly until: MonoUs };
  /** Period of samples for plots; 0 for none. */
  readonly sampleUs: DurationUs;
  readonly seed: number;
  /** Classes, tenants' weights, bounds, gates and models: the gateway's own configuration. */
  readonly config: SchedulerConfig;
  readonly fleet: readonly NodeGroup[];
  readonly streams: readonly StreamSpec[];
  readonly faults: readonly FaultSpec[];
  readonly policies: readonly PolicySpec[];
  readonly bars: readonly Bar[];
}

/** Equal nodes, named `NAME-1` and so on. */
export interface NodeGroup {
  readonly name: string;
  readonly count: number;
  /** An entry of the hardware catalogue, or `reference`, whose service time is the demand's work. */
  readonly hardware: string;
  /** What it says it is; the hardware when it is honest. */
  readonly statedHardware: string;
  /** True speed relative to its hardware, and the lognormal spread (sigma) between nodes of the group. */
  readonly speed: number;
  readonly speedSigma: number;
  readonly engine: EngineSpec;
  /** Which language models it serves: 70 billion parameters over four cards (the default), or 7 to 8 on one. */
  readonly textSize?: 'large' | 'small';
  readonly models: readonly ModelId[];
  /** Models that fit into its memory at once, and the time that loading another one takes; 0 models: all fit. */
  readonly residentMax: number;
  readonly swapUs: DurationUs;
  readonly zone: string;
  readonly rttUs: DurationUs;
  /** How often it beats, and whether its silence makes it suspect. 0: never. */
  readonly beatUs: DurationUs;
  readonly heartbeats: boolean;
  readonly canAbort: boolean;
  /** Whether policies are told the true rates at the start, or must learn them. */
  readonly ratesKnown: boolean;
}

export type EngineSpec =
  /** Tasks beside each other do not touch. */
  | { readonly kind: 'slots'; readonly slots: number }
  /** Up to `batchMax` pictures (of 512 x 512 at 30 steps) together in one pass of `a + c * pictures`. */
  | { readonly kind: 'image-batch'; readonly batchMax: number }
  /** Continuous batching: steps of `a + b * sequences + c * context`, prefill, a bound on cached tokens. */
  | {
      readonly kind: 'text-batch';
      readonly sequencesMax: number;
      readonly cacheTokensMax: Tokens;
      /** Blocks of prompts that stay cached after use, least recently used first out; 0: none. */
      readonly prefixBlocksMax: number;
      readonly tokensPerBlock: Tokens;
    };

/** A kind of traffic. Streams are independent of each other. */
export interface StreamSpec {
  readonly name: string;
  readonly arrivals: ArrivalSpec;
  /** Times the rate, by time: piecewise constant from each instant on. Empty: 1 throughout. */
  readonly course: readonly { readonly from: MonoUs; readonly times: number }[];
  readonly classes: readonly {
    readonly name: ClassName;
    readonly share: Ratio;
    readonly deadlineUs: DurationUs;
  }[];
  /** A deadline is never below this many times the best node's service time; 0: whatever it is. */
  readonly serviceTimesMin: number;
  readonly tenants: TenantsSpec;
  readonly models: readonly { readonly id: ModelId; readonly share: Ratio }[];
  /** Probability that the next request asks for another model than the one before; undefined: each is drawn anew. */
  readonly modelSwitch: Ratio | undefined;
  /** Stages of workflows that its clients tell; empty: none. */
  readonly stages: readonly { readonly stage: TaskStage; readonly share: Ratio }[];
  readonly sizes: SizeSpec;
  /** Lognormal sigma of the estimate that policies see around the true work, and of the service around its model. */
  readonly estimateSigma: number;
  readonly serviceSigma: number;
  readonly isStream: boolean;
  readonly users: UserSpec;
}

export type ArrivalSpec =
  | { readonly kind: 'poisson'; readonly rate: RateSpec }
  | { readonly kind: 'gamma'; readonly rate: RateSpec; readonly cv: number }
  | { readonly kind: 'weibull'; readonly rate: RateSpec; readonly shape: number }
  /** A fixed number of users who ask, read the answer, think, and ask again. */
  | { readonly kind: 'closed'; readonly users: number; readonly thinkMeanUs: DurationUs }
  /** On and off: bursts at the rate, then silence. */
  | {
      readonly kind: 'on-off';
      readonly rate: RateSpec;
      readonly onUs: DurationUs;
      readonly offUs: DurationUs;
    }
  /** Instants and sizes from a file; `times` compresses time. */
  | {
      readonly kind: 'trace';
      readonly format: 'azure' | 'mooncake' | 'servegen';
      readonly file: string;
      readonly times: number;
      /** Stretches of the trace that follow each other, in its own time; absent or empty: the whole of it, once. */
      readonly parts?: readonly TracePart[];
    };

/** From an instant of the trace, the first being 0, to before another one; repeated as often as told, at least once. */
export interface TracePart {
  readonly fromUs: DurationUs;
  readonly untilUs: DurationUs;
  readonly repeats: number;
}

export type RateSpec =
  | { readonly kind: 'per-second'; readonly perSecond: number }
  /** Of the fleet's capacity for this stream's sizes. */
  | { readonly kind: 'load'; readonly load: number };

export type TenantsSpec =
  | { readonly kind: 'one'; readonly id: TenantId }
  /** `PREFIX-1` and so on; `zipf` 0 is even. */
  | { readonly kind: 'many'; readonly prefix: string; readonly count: number; readonly zipf: number };

export type SizeSpec =
  /** Work on the reference machine; lognormal with this mean, sigma 0 is constant. */
  | { readonly kind: 'work'; readonly meanUs: DurationUs; readonly sigma: number }
  /**
   * Images and steps as a production service had them, as work at `usPerImageStep` on the reference machine; at 0 as pictures
   * of 512 x 512 whose time the hardware tells.
   */
  | { readonly kind: 'fitted-images'; readonly usPerImageStep: DurationUs }
  | { readonly kind: 'images'; readonly units: number }
  | {
      readonly kind: 'text';
      readonly promptTokensMean: Tokens;
      readonly promptSigma: number;
      readonly outputTokensMean: Tokens;
      readonly outputSigma: number;
    }
  | { readonly kind: 'embedding'; readonly tokensMean: Tokens; readonly sigma: number }
  /** What the trace says. */
  | { readonly kind: 'trace' };

export interface UserSpec {
  readonly triesMax: number;
  /** Share of users who wait as long as they are told; the others come back after `thinkUs`, whatever they were told. */
  readonly patientShare: Ratio;
  readonly thinkUs: readonly [DurationUs, DurationUs];
  /** Whether the client hangs up at its own deadline. */
  readonly hangsUp: boolean;
  /** Whether retries tell how often they tried, as official clients do. */
  readonly tellsCount: boolean;
}

export type FaultSpec = { readonly at: MonoUs } & (
  | {
      readonly kind: 'dead' | 'hang' | 'refuse' | 'partition' | 'stale-readings';
      readonly nodes: NodesRef;
      readonly forUs: DurationUs;
    }
  | { readonly kind: 'slow'; readonly nodes: NodesRef; readonly times: number; readonly forUs: DurationUs }
  | { readonly kind: 'gray'; readonly nodes: NodesRef; readonly failShare: Ratio; readonly forUs: DurationUs }
  /** Dead for a moment, then back with an empty memory. */
  | { readonly kind: 'restart'; readonly nodes: NodesRef; readonly forUs: DurationUs }
  /** All of them lose their connection and are back at the same instant. */
  | { readonly kind: 'mass-reconnect'; readonly nodes: NodesRef }
  | {
      readonly kind: 'clock-skew';
      readonly nodes: NodesRef;
      readonly skewUs: DurationUs;
      readonly forUs: DurationUs;
    }
  | { readonly kind: 'scheduler-crash'; readonly downUs: DurationUs }
  /** Work of others on the hosts: `load` times the CPU that there is, for everything that the nodes compute. */
  | {
      readonly kind: 'cpu-spike';
      readonly nodes: NodesRef;
      readonly load: number;
      readonly forUs: DurationUs;
    }
);

/** A group, some of a group, or all: `count` of them, the first ones. */
export interface NodesRef {
  /** Name of a group, or '' for the whole fleet. */
  readonly group: string;
  /** 0 for all of them. */
  readonly count: number;
}

export interface PolicySpec {
  /** How reports call it. */
  readonly name: string;
  /** Which policy of the registry it is. */
  readonly policy: string;
  readonly config: SchedulerConfig;
  readonly options: Readonly<Record<string, number | string>>;
  readonly process: ProcessSpec;
}

/** The process in which the policy runs. */
export interface ProcessSpec {
  /** Requests under way at which it dies of lack of memory; 0: never. */
  readonly tasksMax: number;
  /** How long it is down after it died. */
  readonly restartUs: DurationUs;
  /** Whether its registry outlives it. Otherwise nodes are known again at their next beat. */
  readonly registryIsDurable: boolean;
  /** Whether a client that hangs up takes its request with it; false: it goes on waiting and running for nobody. Absent: yes. */
  readonly noticesHangUps?: boolean;
}

/** A figure that must hold, for `simulate` to end with 0. Judged on the mean over seeds, or in the worst of them. */
export interface Bar {
  /** What it stands for, for people. */
  readonly about: string;
  readonly policy: string;
  /** In which variant of the scenario; '' in each. */
  readonly variant: string;
  /** A path into the policy's report, such as `byClass.critical.attained` or `all.responseMs.p99`. */
  readonly metric: string;
  readonly atMost?: number;
  readonly atLeast?: number;
  /** Whether it must hold in every seed. */
  readonly everySeed?: boolean;
  /** The bar is a multiple of a figure of another policy, in another variant, or of another name; '' is the same one. */
  readonly of?: { readonly policy: string; readonly variant: string; readonly metric?: string };
}
