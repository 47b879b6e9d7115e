/**
 * How large image requests are. Shares fitted from a public production trace of a Stable Diffusion service (GenTD26,
 * 26,823 requests over 23 days); the listed pairs are 99 % of it, and shares are normalised to 1. No raw rows.
 * The trace says nothing of pixels; 768 x 768 is our choice, so that a mean request takes an A100 about four seconds.
 */
import type { ImageSize, Uniform } from '../../emulator/index.ts';

export const IMAGE_SIDE_PX = 768;

/** Images, steps, share of requests. */
const FITTED: readonly (readonly [images: number, steps: number, share: number])[] = [
  [1, 30, 0.53941],
  [4, 30, 0.16876],
  [8, 30, 0.1278],
  [2, 30, 0.07101],
  [1, 40, 0.02285],
  [4, 40, 0.01353],
  [8, 40, 0.01015],
  [2, 40, 0.00485],
  [8, 38, 0.00345],
  [8, 50, 0.00337],
  [1, 25, 0.00292],
  [2, 28, 0.00265],
  [4, 28, 0.00261],
  [1, 35, 0.0022],
  [1, 20, 0.00171],
  [1, 28, 0.00163],
  [2, 35, 0.00148],
  [8, 100, 0.0011],
  [4, 35, 0.0011],
  [4, 50, 0.00087],
  [8, 60, 0.00087],
  [4, 45, 0.00087],
  [2, 33, 0.00087],
  [1, 50, 0.00076],
  [1, 8, 0.00072],
  [4, 25, 0.00068],
  [1, 44, 0.00064],
  [1, 26, 0.00061],
  [1, 68, 0.00057],
  [4, 49, 0.00045],
];

const TOTAL: number = FITTED.reduce((sum, row) => sum + row[2], 0);

export const IMAGE_SIZES: readonly ImageSize[] = FITTED.map(([images, steps]) => ({
  images,
  steps,
  pixels: IMAGE_SIDE_PX * IMAGE_SIDE_PX,
}));

const CUMULATIVE: readonly number[] = cumulate();

function cumulate(): number[] {
  let sum = 0;
  return FITTED.map((row) => {
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
  for (const [index, size] of IMAGE_SIZES.entries()) sum += ((FITTED[index]?.[2] ?? 0) / TOTAL) * of(size);
  return sum;
}
