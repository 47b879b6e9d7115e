/**
 * Least squares of relative errors with coefficients that are not negative: each row is divided by what was measured, so
 * that a short time counts as much as a long one, and a feature that would get a negative coefficient is left out.
 * Normal equations, solved by elimination with pivoting: a handful of features.
 */
export interface Sample {
  readonly features: readonly number[];
  readonly measured: number;
}

/** One coefficient per feature. */
export function fitRelative(samples: readonly Sample[]): readonly number[] {
  const count = samples[0]?.features.length ?? 0;
  // A feature that no sample has says nothing.
  let kept = Array.from({ length: count }, (_, feature) => feature).filter((feature) =>
    samples.some(({ features }) => at(features, feature) !== 0),
  );
  for (;;) {
    const solved = solveNormal(samples, kept);
    const least = Math.min(...solved);
    if (Number.isNaN(least)) throw new RangeError('Features must be independent of each other');
    if (least >= 0) {
      return Array.from({ length: count }, (_, at) =>
        kept.includes(at) ? (solved[kept.indexOf(at)] as number) : 0,
      );
    }
    kept = kept.filter((_, at) => solved[at] !== least);
  }
}

export function predict(coefficients: readonly number[], features: readonly number[]): number {
  return features.reduce((sum, feature, at) => sum + feature * (coefficients[at] ?? 0), 0);
}

function solveNormal(samples: readonly Sample[], kept: readonly number[]): number[] {
  const matrix = kept.map((row) =>
    kept.map((column) =>
      sumOf(samples, ({ features, measured }) => (at(features, row) * at(features, column)) / measured ** 2),
    ),
  );
  const right = kept.map((row) => sumOf(samples, ({ features, measured }) => at(features, row) / measured));
  for (let pivot = 0; pivot < kept.length; pivot++) {
    const best = pivotRow(matrix, pivot);
    swap(matrix, pivot, best);
    swap(right, pivot, best);
    for (let row = pivot + 1; row < kept.length; row++) {
      const factor = cell(matrix, row, pivot) / cell(matrix, pivot, pivot);
      for (let column = pivot; column < kept.length; column++)
        (matrix[row] as number[])[column] = cell(matrix, row, column) - factor * cell(matrix, pivot, column);
      right[row] = at(right, row) - factor * at(right, pivot);
    }
  }
  return backSubstitute(matrix, right);
}

function backSubstitute(matrix: readonly number[][], right: readonly number[]): number[] {
  const solved = new Array<number>(right.length).fill(0);
  for (let row = right.length - 1; row >= 0; row--) {
    let rest = at(right, row);
    for (let column = row + 1; column < right.length; column++)
      rest -= cell(matrix, row, column) * at(solved, column);
    solved[row] = rest / cell(matrix, row, row);
  }
  return solved;
}

function pivotRow(matrix: readonly number[][], pivot: number): number {
  let best = pivot;
  for (let row = pivot + 1; row < matrix.length; row++)
    if (Math.abs(cell(matrix, row, pivot)) > Math.abs(cell(matrix, best, pivot))) best = row;
  return best;
}

function swap<T>(list: T[], a: number, b: number): void {
  const held = list[a] as T;
  list[a] = list[b] as T;
  list[b] = held;
}

function sumOf(samples: readonly Sample[], term: (sample: Sample) => number): number {
  return samples.reduce((sum, sample) => sum + term(sample), 0);
}

function at(list: readonly number[], index: number): number {
  return list[index] as number;
}

function cell(matrix: readonly number[][], row: number, column: number): number {
  return (matrix[row] as number[])[column] as number;
}
