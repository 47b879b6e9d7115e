/**
 * What the schema of a scenario file lets through: units are gone (microseconds, per second), shorthands are still
 * there. Kept by hand beside the schema: the inferred type is slow to check and to read.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';
import type { SizeSpec } from './types.ts';

/** A section that is there or not; what parsers give is not exact. */
type Maybe<T> = T | undefined;

export interface ScenarioFile {
  readonly name?: Maybe<string>;
  readonly about: string;
  readonly span: DurationUs;
  readonly drain?: Maybe<DurationUs>;
  readonly window?: Maybe<{ readonly from: MonoUs; readonly until?: Maybe<MonoUs> }>;
  readonly sample: DurationUs;
  readonly seed: number;
  readonly seeds: number;
  /** In the form of `spillway.yaml`. */
  readonly config?: Maybe<Readonly<Record<string, unknown>>>;
  readonly fleet: Readonly<Record<string, number | GroupFile>>;
  readonly streams: Readonly<Record<string, StreamFile>>;
  readonly faults: readonly FaultFile[];
  readonly policies: readonly (string | PolicyFile)[];
  readonly bars: readonly BarFile[];
}

export interface GroupFile {
  readonly count: number;
  readonly hardware: string;
  readonly stated?: Maybe<string>;
  readonly speed: number;
  readonly spread: number;
  readonly engine: EngineFile;
  readonly models?: Maybe<readonly string[]>;
  readonly resident: number;
  readonly swap: DurationUs;
  readonly zone: string;
  readonly rtt: DurationUs;
  readonly beat: DurationUs;
  readonly heartbeats: boolean;
  readonly aborts: boolean;
  readonly ratesKnown: boolean;
}

export type EngineFile =
  | { readonly kind: 'slots'; readonly slots: number }
  | { readonly kind: 'image-batch'; readonly batchMax: number }
  | {
      readonly kind: 'text-batch';
      readonly sequencesMax: number;
      readonly cacheTokensMax: number;
      readonly prefixBlocksMax: number;
      readonly tokensPerBlock: number;
    };

export interface StreamFile {
  readonly rate?: Maybe<number>;
  readonly load?: Maybe<number>;
  readonly arrivals: ArrivalFile;
  readonly course: readonly { readonly from: MonoUs; readonly times: number }[];
  readonly spike?: Maybe<SpikeFile>;
  readonly staircase?: Maybe<StaircaseFile>;
  readonly diurnal?: Maybe<DiurnalFile>;
  readonly classes?: Maybe<Readonly<Record<string, number | ClassFile>>>;
  readonly deadline?: Maybe<DurationUs>;
  readonly serviceTimesMin?: Maybe<number>;
  readonly tenants: string | number | TenantsFile;
  readonly models: string | Readonly<Record<string, number>>;
  readonly modelSwitch?: Maybe<Ratio>;
  readonly stages?: Maybe<Readonly<Record<string, StageFile>>>;
  readonly sizes: 'fitted-images' | 'trace' | SizeSpecFile;
  readonly noise: { readonly estimate: number; readonly service: number };
  readonly streamed: boolean;
  readonly users: UsersFile;
}

export interface StageFile {
  readonly share: Ratio;
  readonly after?: Maybe<string>;
}

export interface ClassFile {
  readonly share: Ratio;
  readonly deadline?: Maybe<DurationUs>;
}

export interface TenantsFile {
  readonly prefix: string;
  readonly count: number;
  readonly zipf: number;
}

export type ArrivalFile =
  | 'poisson'
  | { readonly kind: 'poisson' }
  | { readonly kind: 'gamma'; readonly cv: number }
  | { readonly kind: 'weibull'; readonly shape: number }
  | { readonly kind: 'closed'; readonly users: number; readonly think: DurationUs }
  | { readonly kind: 'on-off'; readonly on: DurationUs; readonly off: DurationUs }
  | {
      readonly kind: 'trace';
      readonly format: 'azure' | 'mooncake' | 'servegen';
      readonly file?: Maybe<string>;
      readonly times: number;
      readonly parts: readonly TracePartFile[];
    };

export interface TracePartFile {
  readonly from: DurationUs;
  readonly until: DurationUs;
  readonly repeats: number;
}

export interface SpikeFile {
  readonly from: MonoUs;
  readonly for: DurationUs;
  readonly times: number;
}

export interface StaircaseFile {
  readonly from: MonoUs;
  readonly for?: Maybe<DurationUs>;
  readonly steps: number;
  readonly times: number;
  readonly down: boolean;
}

export interface DiurnalFile {
  readonly period: DurationUs;
  readonly low: number;
  readonly high: number;
  /** When it is lowest. */
  readonly lowAt: MonoUs;
}

export type SizeSpecFile =
  | { readonly kind: 'work'; readonly mean: DurationUs; readonly sigma: number }
  | { readonly kind: 'fitted-images'; readonly perImageStep: DurationUs }
  | { readonly kind: 'images'; readonly units: number }
  | Extract<SizeSpec, { kind: 'text' | 'embedding' | 'trace' }>;

export interface UsersFile {
  readonly tries: number;
  readonly patient: Ratio;
  readonly think: readonly [DurationUs, DurationUs];
  readonly hangsUp: boolean;
  readonly tellsCount: boolean;
}

export interface FaultFile {
  readonly at: MonoUs;
  readonly kind: string;
  readonly nodes?: Maybe<string>;
  readonly count?: Maybe<number>;
  readonly for?: Maybe<DurationUs>;
  readonly times?: Maybe<number>;
  readonly failShare?: Maybe<Ratio>;
  readonly skew?: Maybe<DurationUs>;
  readonly load?: Maybe<number>;
}

export interface PolicyFile {
  readonly name?: Maybe<string>;
  readonly policy: string;
  readonly config?: Maybe<Readonly<Record<string, unknown>>>;
  readonly options: Readonly<Record<string, number | string>>;
  readonly process: ProcessFile;
}

export interface ProcessFile {
  readonly tasksMax: number;
  readonly restart: DurationUs;
  readonly registry: 'durable' | 'heartbeats';
  readonly hangUps: 'noticed' | 'missed';
}

export interface BarFile {
  readonly about: string;
  readonly policy?: Maybe<string>;
  readonly variant?: Maybe<string>;
  readonly metric: string;
  readonly atMost?: Maybe<number>;
  readonly atLeast?: Maybe<number>;
  readonly everySeed?: Maybe<boolean>;
  readonly of?: Maybe<string | BarBaseFile>;
}

export interface BarBaseFile {
  readonly policy?: Maybe<string>;
  readonly variant?: Maybe<string>;
  readonly metric?: Maybe<string>;
}
