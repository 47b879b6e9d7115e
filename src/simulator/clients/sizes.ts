/**
 * What requests of a stream ask for: a demand drawn from the size law, its true work, and the least deadline that any node
 * could keep. Where there are only few sizes they are made once and shared.
 */
import { assertNever, invariant } from '../../base/assert.ts';
import type { Bytes, DurationUs, Ratio, RefUs, Tokens } from '../../base/units.ts';
import { PREFIX_BLOCKS_MAX, type TaskPrefix } from '../../core/request/index.ts';
import { referenceWorkUs } from '../../hardware/reference-work.ts';
import type { Demand } from '../machines/machine.ts';
import type { StreamSpec } from '../scenario/types.ts';
import type { Draws } from './draws.ts';
import { FITTED_IMAGES } from './fitted.ts';
import { Shares } from './shares.ts';
import { demandOf, type TraceRow } from './traces/trace.ts';

export interface Size {
  readonly demand: Demand;
  /** On the reference machine, without noise. */
  readonly workUs: RefUs;
  /** Part of the work up to the first content byte, where answers are streamed; otherwise 1. */
  readonly firstByteShare: Ratio;
  /** No deadline is below. */
  readonly deadlineUsMin: DurationUs;
  /** Of the body and its head. */
  readonly bytes: Bytes;
  readonly promptTokens: Tokens;
  /** Prompt and output. */
  readonly tokens: Tokens;
  /** How the prompt begins, where the demand tells its blocks. */
  readonly prefix: TaskPrefix | undefined;
}

export type SizeLaw = (draws: Draws) => Size;

export interface SizeContext {
  /** What the best node needs for a demand, alone. */
  readonly bestServiceUs: (demand: Demand) => DurationUs;
}

/** A request of a few parameters, and English text in common tokenizers. */
const HEAD_BYTES: Bytes = 600;
const BYTES_PER_TOKEN = 4;

/** The size law of a stream. By the sizes of a trace, each is that of any of its rows. */
export function createSizeLaw(stream: StreamSpec, context: SizeContext, rows: readonly TraceRow[]): SizeLaw {
  const { sizes } = stream;
  const of = (demand: Demand): Size => sizeOf(demand, stream, context);
  switch (sizes.kind) {
    case 'work': {
      const { meanUs, sigma } = sizes;
      if (sigma === 0) return always(of({ kind: 'work', workUs: atLeastOne(meanUs) }));
      return (draws) => of({ kind: 'work', workUs: atLeastOne(meanUs * draws.lognormal(sigma)) });
    }
    case 'fitted-images': {
      const table = FITTED_IMAGES.map(([images, steps]) =>
        of(imagesDemand(images * steps, sizes.usPerImageStep)),
      );
      const shares = new Shares(FITTED_IMAGES.map(([, , share]) => share));
      return (draws) => table[shares.pick(draws.ratio())] as Size;
    }
    case 'images':
      return always(of({ kind: 'image', units: sizes.units }));
    case 'text': {
      const { promptTokensMean, promptSigma, outputTokensMean, outputSigma } = sizes;
      return (draws) => {
        const promptTokens = atLeastOne(promptTokensMean * draws.lognormal(promptSigma));
        const outputTokens = atLeastOne(outputTokensMean * draws.lognormal(outputSigma));
        return of({ kind: 'text', promptTokens, outputTokens });
      };
    }
    case 'embedding': {
      const { tokensMean, sigma } = sizes;
      return (draws) => of({ kind: 'embedding', tokens: atLeastOne(tokensMean * draws.lognormal(sigma)) });
    }
    case 'trace':
      invariant(rows.length > 0, 'Sizes of a trace need arrivals of a trace that tells them');
      return (draws) => of(demandOf(rows[Math.floor(draws.ratio() * rows.length)] as TraceRow, 0));
    default:
      return assertNever(sizes);
  }
}

/** By a stated price per image and step, or as images of 512 x 512 whose time the hardware tells. */
function imagesDemand(imageSteps: number, usPerImageStep: DurationUs): Demand {
  if (usPerImageStep > 0) return { kind: 'work', workUs: atLeastOne(imageSteps * usPerImageStep) };
  return { kind: 'image', units: imageSteps / 30 };
}

export function sizeOf(demand: Demand, stream: StreamSpec, { bestServiceUs }: SizeContext): Size {
  const workUs = referenceWorkUs(demand);
  const isStreamed = stream.isStream && demand.kind === 'text';
  const bounded: Demand = isStreamed ? { ...demand, outputTokens: 1 } : demand;
  const times = stream.serviceTimesMin;
  const promptTokens = promptTokensOf(demand);
  return {
    demand,
    workUs,
    firstByteShare: isStreamed ? referenceWorkUs(bounded) / workUs : 1,
    deadlineUsMin: times === 0 ? 0 : Math.ceil(times * bestServiceUs(bounded)),
    bytes: HEAD_BYTES + BYTES_PER_TOKEN * promptTokens,
    promptTokens,
    tokens: promptTokens + (demand.kind === 'text' ? demand.outputTokens : 0),
    prefix: prefixOf(demand),
  };
}

/** All blocks of a prompt save the same: its prefill, divided evenly. */
function prefixOf(demand: Demand): TaskPrefix | undefined {
  if (demand.kind !== 'text' || demand.blocks === undefined || demand.blocks.length === 0) return undefined;
  const { blocks, promptTokens } = demand;
  const alone: Demand = { kind: 'text', promptTokens, outputTokens: 1 };
  const promptUs = referenceWorkUs(alone) - referenceWorkUs({ ...alone, promptTokens: 1 });
  return { blocks: blocks.slice(0, PREFIX_BLOCKS_MAX), workUsPerBlock: Math.round(promptUs / blocks.length) };
}

function promptTokensOf(demand: Demand): Tokens {
  if (demand.kind === 'text') return demand.promptTokens;
  return demand.kind === 'embedding' ? demand.tokens : 0;
}

function always(size: Size): SizeLaw {
  return () => size;
}

function atLeastOne(value: number): number {
  return Math.max(1, Math.round(value));
}
