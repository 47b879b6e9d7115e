/**
 * The value of a rank without sorting the rest: quickselect (Hoare, 1961), the pivot the median of three. O(n) in the
 * mean, where sorting is O(n log n): a report asks for three ranks of each of its groups.
 */

/**
 * What `values` would have at `rank` if it were sorted; reorders it so that nothing before `rank` is greater and nothing
 * behind it less. `from`: values before it are known to be at their side.
 */
export function selectRank(values: Float64Array, rank: number, from = 0): number {
  let low = from;
  let high = values.length - 1;
  while (low < high) {
    const pivot = medianOf(
      values[low] as number,
      values[(low + high) >> 1] as number,
      values[high] as number,
    );
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] as number) < pivot) left += 1;
      while ((values[right] as number) > pivot) right -= 1;
      if (left > right) break;
      const moved = values[left] as number;
      values[left] = values[right] as number;
      values[right] = moved;
      left += 1;
      right -= 1;
    }
    if (rank <= right) high = right;
    else if (rank >= left) low = left;
    else break;
  }
  return values[rank] as number;
}

function medianOf(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
