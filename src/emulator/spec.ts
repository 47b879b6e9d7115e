/** What an emulated fleet is made of. Read from a JSON file or given by a test. */
import { z } from 'zod';
import type { Tokens } from '../base/units.ts';
import { HARDWARE, type Hardware } from './hardware.ts';

const hardwareSchema = z.enum(HARDWARE as [Hardware, ...Hardware[]]);

const nodeSchema = z.strictObject({
  id: z.string().min(1).max(64),
  /** 0 takes a free port. */
  port: z.int().min(0).max(65_535).default(0),
  kind: z.enum(['image', 'text']),
  model: z.string().min(1).max(128),
  /** What the node says it is. */
  statedHardware: hardwareSchema,
  /** What it is. */
  trueHardware: hardwareSchema,
  /** True speed relative to `trueHardware`: 0.5 is a card that delivers half of what its kind should. */
  trueSpeed: z.number().min(0.01).max(100).default(1),
  /** Whether a client's close frees the slot. Many image servers run on: then the work is a ghost. */
  abortFreesSlot: z.boolean().default(true),
  sequencesMax: z.int().min(1).max(4_096).default(32),
  cacheTokensMax: z.int().min(256).max(10_000_000).default(65_536),
  /** A distilled image model on the same card: it needs at most so many steps, whatever is asked. */
  distilled: z
    .strictObject({ model: z.string().min(1).max(128), stepsMax: z.int().min(1).max(1_000) })
    .optional(),
});

const fleetSchema = z.strictObject({
  /** Emulated seconds per real second. */
  speedup: z.number().min(0.01).max(10_000).default(1),
  seed: z.int().min(0).default(1),
  /** Sigma of the lognormal noise on each service time; its mean is 1. */
  noiseSigma: z.number().min(0).max(2).default(0.2),
  controlPort: z.int().min(0).max(65_535).default(0),
  /** Tasks that one node lets wait; more are refused with 503. */
  queueMax: z.int().min(0).max(1_000_000).default(100_000),
  nodes: z.array(nodeSchema).max(2_000),
});

export interface EmulatedNodeSpec {
  readonly id: string;
  readonly port: number;
  readonly kind: 'image' | 'text';
  readonly model: string;
  readonly statedHardware: Hardware;
  readonly trueHardware: Hardware;
  readonly trueSpeed: number;
  readonly abortFreesSlot: boolean;
  readonly sequencesMax: number;
  readonly cacheTokensMax: Tokens;
  readonly distilled?: { readonly model: string; readonly stepsMax: number } | undefined;
}

export interface EmulatedFleetSpec {
  readonly speedup: number;
  readonly seed: number;
  readonly noiseSigma: number;
  readonly controlPort: number;
  readonly queueMax: number;
  readonly nodes: readonly EmulatedNodeSpec[];
}

type Optional<T, Keys extends keyof T> = Omit<T, Keys> & Partial<Pick<T, Keys>>;

/** As people write it: whatever has a default may be left out. */
export type EmulatedNodeInput = Optional<
  EmulatedNodeSpec,
  'port' | 'trueSpeed' | 'abortFreesSlot' | 'sequencesMax' | 'cacheTokensMax'
>;

export type EmulatedFleetInput = Partial<Omit<EmulatedFleetSpec, 'nodes'>> & {
  readonly nodes: readonly EmulatedNodeInput[];
};

export type FleetSpecResult =
  | { readonly kind: 'spec'; readonly spec: EmulatedFleetSpec }
  | { readonly kind: 'invalid'; readonly detail: string };

export function parseFleetSpec(value: unknown): FleetSpecResult {
  const parsed = fleetSchema.safeParse(value);
  if (!parsed.success) return { kind: 'invalid', detail: z.prettifyError(parsed.error) };
  const ids = new Set(parsed.data.nodes.map((node) => node.id));
  if (ids.size !== parsed.data.nodes.length) return { kind: 'invalid', detail: 'Node ids must be distinct' };
  return { kind: 'spec', spec: parsed.data };
}
