/** Which lesser answers a request may get: what its client consented to, its class allows and the configuration offers. */
import type { ModelId } from '../../base/units.ts';
import type { ModelConfig, QualityConfig, SchedulerConfig, WorkProfile } from '../config/types.ts';
import type { Needs } from '../request/needs.ts';
import type { RequestShape } from '../request/task.ts';
import type { WorkEstimate } from '../scheduler/contract.ts';
import type { Alternative, LesserTask } from './alternative.ts';

/** What a client takes instead of the answer that it asked for. */
export interface DegradeConsent {
  readonly cache: boolean;
  readonly model: boolean;
  readonly quality: boolean;
  readonly default: boolean;
}

/** What is to be planned for. */
export interface WholeRequest {
  readonly className: string;
  readonly model: ModelId;
  readonly shape: RequestShape;
  readonly needs: Needs;
  readonly stream: boolean;
  readonly usesContext: boolean;
  /** An answer is remembered. */
  readonly hasRemembered: boolean;
  /** A default answer is configured for this kind of request. */
  readonly hasDefault: boolean;
}

/** An alternative, and how the request is changed for it. */
export interface PlannedAnswer {
  readonly alternative: Alternative;
  /** As it is estimated; that of the whole request where nothing runs. */
  readonly shape: RequestShape;
  readonly lowered: Lowered;
}

/** What of a request is lowered; 0 for what stays. */
export interface Lowered {
  readonly outputTokensMax: number;
  readonly steps: number;
  /** `WIDTHxHEIGHT`, or ''. */
  readonly size: string;
}

export const NOTHING_LOWERED: Lowered = Object.freeze({ outputTokensMax: 0, steps: 0, size: '' });

type Estimate = (model: ModelId, shape: RequestShape) => WorkEstimate;

/** In the order of use: remembered answer, cheaper models, lower qualities, configured answer. */
export function planAnswers(
  config: SchedulerConfig,
  consent: DegradeConsent,
  { request, estimate }: { readonly request: WholeRequest; readonly estimate: Estimate },
): readonly PlannedAnswer[] {
  if (!config.degrade.classes.includes(request.className)) return [];
  const model = config.models.find((one) => one.id === request.model);
  const { shape } = request;
  const planned: PlannedAnswer[] = [];
  const add = (
    task: Pick<LesserTask, 'how' | 'name' | 'model'>,
    lesser: RequestShape,
    lowered: Lowered,
  ): void => {
    const alternative = lesserTask(task, request, { shape: lesser, cost: estimate(task.model, lesser) });
    planned.push({ alternative, shape: lesser, lowered });
  };
  if (consent.cache && request.hasRemembered) {
    planned.push({ alternative: { how: 'cache' }, shape, lowered: NOTHING_LOWERED });
  }
  for (const variant of consent.model ? (model?.variants ?? []) : []) {
    add({ how: 'model', name: variant.model, model: variant.model }, shape, NOTHING_LOWERED);
  }
  for (const quality of consent.quality ? (model?.quality ?? []) : []) {
    const lesser = lowerShape(shape, quality, model as ModelConfig);
    if (lesser !== undefined)
      add(
        { how: 'quality', name: quality.name, model: request.model },
        lesser,
        loweredOf(shape, lesser, quality),
      );
  }
  if (consent.default && request.hasDefault) {
    planned.push({ alternative: { how: 'default' }, shape, lowered: NOTHING_LOWERED });
  }
  return planned;
}

function lesserTask(
  task: Pick<LesserTask, 'how' | 'name' | 'model'>,
  request: WholeRequest,
  { shape, cost }: { readonly shape: RequestShape; readonly cost: WorkEstimate },
): LesserTask {
  const pixels = request.needs.pixels === 0 ? 0 : shape.pixelsPerImage;
  const contextTokens = request.usesContext ? cost.contextTokens : request.needs.contextTokens;
  return {
    ...task,
    needs: { ...request.needs, pixels, contextTokens },
    workUs: cost.workUs,
    firstByteWorkUs: request.stream ? cost.firstByteWorkUs : cost.workUs,
    tokens: cost.tokens,
    promptTokens: cost.promptTokens,
  };
}

/** The shape at this quality, or undefined when it lowers nothing of this request. */
export function lowerShape(
  shape: RequestShape,
  quality: QualityConfig,
  model: Pick<ModelConfig, 'profile'>,
): RequestShape | undefined {
  const lesser = shape.images > 0 ? lowerImages(shape, quality, model.profile) : lowerText(shape, quality);
  const isSame =
    lesser.outputTokensMax === shape.outputTokensMax &&
    lesser.steps === shape.steps &&
    lesser.pixelsPerImage === shape.pixelsPerImage;
  return isSame ? undefined : lesser;
}

function lowerText(shape: RequestShape, { maxTokens, maxTokensRatio }: QualityConfig): RequestShape {
  const asked = shape.outputTokensMax;
  const part =
    maxTokensRatio === undefined || asked === 0 ? asked : Math.max(1, Math.floor(asked * maxTokensRatio));
  return { ...shape, outputTokensMax: least(part, maxTokens ?? 0) };
}

/** Where the request leaves it open, the model's default is what is lowered. */
function lowerImages(
  shape: RequestShape,
  { steps, size }: QualityConfig,
  profile: WorkProfile,
): RequestShape {
  const defaults = profile.kind === 'image' ? profile : { stepsDefault: 0, pixelsDefault: 0 };
  return {
    ...shape,
    steps: lowerOne(shape.steps, steps ?? 0, defaults.stepsDefault),
    pixelsPerImage: lowerOne(shape.pixelsPerImage, pixelsOf(size), defaults.pixelsDefault),
  };
}

/** 0 means open in `asked`, no limit in `limit`, unknown in `standard`. */
function lowerOne(asked: number, limit: number, standard: number): number {
  if (limit === 0) return asked;
  const usual = asked === 0 ? standard : asked;
  return usual > 0 && usual <= limit ? asked : limit;
}

function least(a: number, b: number): number {
  if (a === 0 || b === 0) return Math.max(a, b);
  return Math.min(a, b);
}

function pixelsOf(size: string | undefined): number {
  if (size === undefined) return 0;
  const [width = 0, height = 0] = size.split('x').map(Number);
  return width * height;
}

function loweredOf(whole: RequestShape, lesser: RequestShape, { size = '' }: QualityConfig): Lowered {
  return {
    outputTokensMax: lesser.outputTokensMax === whole.outputTokensMax ? 0 : lesser.outputTokensMax,
    steps: lesser.steps === whole.steps ? 0 : lesser.steps,
    size: lesser.pixelsPerImage === whole.pixelsPerImage ? '' : size,
  };
}
