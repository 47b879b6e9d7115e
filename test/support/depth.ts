/**
 * How often a property is drawn. A usual run draws a part, so that the whole gate stays short on a slow machine; every draw is
 * another one under another seed. `TEST_DEPTH=deep npm test` draws them all, and so does the run of named faults.
 */
const USUAL_SHARE = 0.4;

export function drawsOf(
  deep: number,
  env: Readonly<Record<string, string | undefined>> = process.env,
): number {
  const depth = env['TEST_DEPTH'] ?? '';
  if (depth === 'deep') return deep;
  if (depth !== '') throw new Error(`TEST_DEPTH must be deep or unset, it is ${JSON.stringify(depth)}`);
  return Math.ceil(deep * USUAL_SHARE);
}
