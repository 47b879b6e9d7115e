/**
 * How large image requests are: images and steps as a production service had them, shares normalised to 1. The trace
 * behind them says nothing of pixels; 768 x 768 is our choice, so that a mean request takes an A100 about four seconds.
 */
import type { ImageSize, Uniform } from '../../emulator/index.ts';
import { FITTED_IMAGES } from '../../simulator/clients/fitted.ts';

export const IMAGE_SIDE_PX = 768;

const TOTAL: number = FITTED_IMAGES.reduce((sum, row) => sum + row[2], 0);

export const IMAGE_SIZES: readonly ImageSize[] = FITTED_IMAGES.map(([images, steps]) => ({
  images,
  steps,
  pixels: IMAGE_SIDE_PX * IMAGE_SIDE_PX,
}));

const CUMULATIVE: readonly number[] = cumulate();

function cumulate(): number[] {
  let sum = 0;
  return FITTED_IMAGES.map((row) => {
    sum += row[2] / TOTAL;
    return sum;
  });
}

/** Index into `IMAGE_SIZES`. */
export function drawSize(uniform: Uniform): number {
  const at = uniform();
  for (let index = 0; index < CUMULATIVE.length - 1; index += 1) {
    if (at < (CUMULATIVE[index] as number)) return index;
  }
  return CUMULATIVE.length - 1;
}

/** Mean of a function of the size over all requests. */
export function meanOverSizes(of: (size: ImageSize) => number): number {
  let sum = 0;
  for (const [index, size] of IMAGE_SIZES.entries())
    sum += ((FITTED_IMAGES[index]?.[2] ?? 0) / TOTAL) * of(size);
  return sum;
}
