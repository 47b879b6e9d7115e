/** The accelerators that can be played, and their rows of the catalogue: published service times, not measured here. */
import type { DurationMs } from '../base/units.ts';
import { catalogueEntry, type CatalogueEntry } from '../hardware/catalogue.ts';
import { type ImageModel, type ImageSize, imageServiceMs, type TextModel } from '../hardware/service-time.ts';

export type Hardware = 'T4' | 'V100' | 'A100' | 'H100';

export const HARDWARE: readonly Hardware[] = ['T4', 'V100', 'A100', 'H100'];

export const IMAGE_MODELS: Readonly<Record<Hardware, ImageModel>> = byHardware(({ images }) => images?.model);

export const TEXT_MODELS: Readonly<Record<Hardware, TextModel>> = byHardware(
  ({ textLarge }) => textLarge?.model,
);

function byHardware<Model>(
  modelOf: (entry: CatalogueEntry) => Model | undefined,
): Readonly<Record<Hardware, Model>> {
  function row(name: Hardware): Model {
    const entry = catalogueEntry(name);
    const model = entry === undefined ? undefined : modelOf(entry);
    if (model === undefined) throw new Error(`The catalogue has no such row of ${name}`);
    return model;
  }
  return { T4: row('T4'), V100: row('V100'), A100: row('A100'), H100: row('H100') };
}

/** Work of an image request: its time alone on the accelerator that defines one unit of work. */
export function imageWorkMs(size: ImageSize): DurationMs {
  return imageServiceMs(IMAGE_MODELS.A100, size);
}

/** The same of a text request; that its context makes each step a little longer is left out. */
export function textWorkMs(promptTokens: number, outputTokens: number): DurationMs {
  const model = TEXT_MODELS.A100;
  return model.prefillMsPerToken * promptTokens + (model.stepMs + model.perSequenceMs) * outputTokens;
}
