/** A copy of twice the length, zeros behind: how tables that are indexed by handle grow, so that n entries cost O(n) in all. */
export function doubled(values: Int32Array): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(2 * values.length);
  grown.set(values);
  return grown;
}
