/**
 * Numbers fitted from a public production trace of a Stable Diffusion service (GenTD26, alibaba/clusterdata): 26,823
 * requests over 23 days. Shares, no rows of the trace.
 */
import type { ModelId, Ratio } from '../../base/units.ts';

/** Images and diffusion steps of a request, and its share; the listed pairs are 99 % of the trace. */
export const FITTED_IMAGES: readonly (readonly [images: number, steps: number, share: number])[] = [
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

/** Shares of models by rank. */
const MODEL_SHARES: readonly number[] = [
  0.3118, 0.15073, 0.09495, 0.08006, 0.07392, 0.04335, 0.03626, 0.02849, 0.02721, 0.02698, 0.02182, 0.00879,
  0.00754, 0.00716, 0.0069, 0.0053, 0.00424, 0.00398, 0.0036, 0.0033, 0.00288, 0.00269, 0.00261, 0.00242,
  0.00239, 0.00239, 0.00205, 0.00201, 0.00197, 0.00197, 0.00189, 0.00186, 0.00167, 0.00163, 0.00148, 0.00133,
  0.00133, 0.00125, 0.00121, 0.00117, 0.00114, 0.00106, 0.00106, 0.00102, 0.00099, 0.00087, 0.00083, 0.00083,
  0.0008, 0.00076, 0.00068, 0.00064, 0.00064, 0.00042, 0.00038, 0.00034, 0.0003, 0.0003, 0.00027, 0.00023,
  0.00019, 0.00019, 0.00019, 0.00015, 0.00011, 0.00011, 0.00011, 0.00011, 0.00011, 0.00008, 0.00008, 0.00008,
  0.00008, 0.00008, 0.00004, 0.00004, 0.00004, 0.00004, 0.00004,
];

/** Probability that the next request asks for another model than the one before it. */
export const FITTED_MODEL_SWITCH: Ratio = 0.744;

/** The models of the trace as `PREFIX-1` and so on, the most wanted first. */
export function fittedModels(prefix: string): { readonly id: ModelId; readonly share: Ratio }[] {
  return MODEL_SHARES.map((share, index) => ({ id: `${prefix}-${index + 1}`, share }));
}
