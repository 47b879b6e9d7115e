/** The machine behind a node: which engine it runs and how long things take there. */
import { assertNever } from '../../base/assert.ts';
import { type Rate, US_PER_MS } from '../../base/units.ts';
import { type HardwareTimes, hardwareTimes, UNIT_HARDWARE } from '../../hardware/hardware-times.ts';
import { prefillMs } from '../../hardware/service-time.ts';
import { ImageBatch } from '../machines/image-batch.ts';
import type { Demand, Machine } from '../machines/machine.ts';
import { PrefixCache } from '../machines/prefix-cache.ts';
import { Residency } from '../machines/residency.ts';
import { SlotMachine } from '../machines/slot-machine.ts';
import { type StepTimes, TextBatch, type TextShape } from '../machines/text-batch.ts';
import type { EngineSpec, NodeGroup } from '../scenario/types.ts';

/** `speed` is relative to the group's hardware. Throws RangeError for hardware that is not in the catalogue. */
export function createMachine(group: NodeGroup, speed: Rate): Machine {
  const { engine, canAbort } = group;
  const times = hardwareTimes(group.hardware, group.textSize ?? 'large');
  const shared = { canAbort, residency: residencyOf(group) };
  switch (engine.kind) {
    case 'slots':
      return new SlotMachine({ ...shared, slots: engine.slots, ...slotTimes(times, speed) });
    case 'image-batch':
      return new ImageBatch({ ...shared, sizeMax: engine.batchMax, ...batchTimes(times, speed) });
    case 'text-batch':
      return createTextBatch(engine, { ...shared, times: stepTimes(times, speed) });
    default:
      return assertNever(engine);
  }
}

function residencyOf({ residentMax, swapUs, models }: NodeGroup): Residency | undefined {
  if (residentMax === 0 || residentMax >= models.length) return undefined;
  return new Residency({ modelsMax: residentMax, swapUs, loaded: models });
}

function slotTimes({ soloUs }: HardwareTimes, speed: Rate): Pick<SlotOptions, 'serviceUs' | 'firstByteUs'> {
  const serviceUs = (demand: Demand): number => soloUs(demand) / speed;
  return {
    serviceUs,
    // The first token comes when the prompt was computed and one step was done.
    firstByteUs: (demand) => serviceUs(demand.kind === 'text' ? { ...demand, outputTokens: 1 } : demand),
  };
}

type SlotOptions = ConstructorParameters<typeof SlotMachine>[0];
type BatchOptions = ConstructorParameters<typeof ImageBatch>[0];

function batchTimes(
  { soloUs, fixedUs }: HardwareTimes,
  speed: Rate,
): Pick<BatchOptions, 'fixedUs' | 'variableUs' | 'size'> {
  return {
    fixedUs: (demand) => fixedUs(demand) / speed,
    variableUs: (demand) => (soloUs(demand) - fixedUs(demand)) / speed,
    size: (demand) => (demand.kind === 'image' ? demand.units : 1),
  };
}

function stepTimes(times: HardwareTimes, speed: Rate): StepTimes {
  const text = times.text();
  const us = US_PER_MS / speed;
  return {
    stepUs: text.stepMs * us,
    perSequenceUs: text.perSequenceMs * us,
    perContextTokenUs: text.perContextTokenMs * us,
    prefillUs: (tokens) => prefillMs(text, tokens) * us,
  };
}

function createTextBatch(
  {
    sequencesMax,
    cacheTokensMax,
    prefixBlocksMax,
    tokensPerBlock,
  }: Extract<EngineSpec, { kind: 'text-batch' }>,
  options: {
    readonly times: StepTimes;
    readonly canAbort: boolean;
    readonly residency: Residency | undefined;
  },
): TextBatch {
  return new TextBatch({
    ...options,
    shapeOf,
    sequencesMax,
    cacheTokensMax,
    prefixes: prefixBlocksMax > 0 ? { cache: new PrefixCache(prefixBlocksMax), tokensPerBlock } : undefined,
  });
}

const REFERENCE_STEPS = stepTimes(hardwareTimes(UNIT_HARDWARE, 'large'), 1);

/** Work that does not say what it is becomes as many tokens as the reference makes alone meanwhile; an embedding is a prompt. */
function shapeOf(demand: Demand): TextShape {
  switch (demand.kind) {
    case 'text':
      return demand.outputTokens >= 1 ? demand : { ...demand, outputTokens: 1 };
    case 'embedding':
      return { promptTokens: demand.tokens, outputTokens: 1 };
    case 'work':
      return {
        promptTokens: 0,
        outputTokens: Math.max(
          1,
          Math.round(demand.workUs / (REFERENCE_STEPS.stepUs + REFERENCE_STEPS.perSequenceUs)),
        ),
      };
    case 'image':
      throw new RangeError('A text engine makes no pictures');
    default:
      return assertNever(demand);
  }
}
