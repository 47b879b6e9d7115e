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

/**
 * The seeds of a property: `own`, which is `FC_SEED`, or in a deep run those that `TEST_SEEDS` names, `100` or `1-50`.
 */
export function seedsOf(
  own: number,
  env: Readonly<Record<string, string | undefined>> = process.env,
): readonly number[] {
  const wanted = env['TEST_SEEDS'] ?? '';
  if (wanted === '') return [own];
  const match = /^(\d+)(?:-(\d+))?$/.exec(wanted);
  const first = Number(match?.[1]);
  const last = Number(match?.[2] ?? match?.[1]);
  if (match === null || last < first)
    throw new Error(`TEST_SEEDS must be a number or a range such as 1-50, it is ${JSON.stringify(wanted)}`);
  if (env['TEST_DEPTH'] !== 'deep') throw new Error('TEST_SEEDS asks for TEST_DEPTH=deep');
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
