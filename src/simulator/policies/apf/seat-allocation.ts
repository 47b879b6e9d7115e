/**
 * How seats are divided anew between priority levels: each level lends what it does not use and takes back what it lent at
 * the next division. Targets are scaled by one common factor, each result kept within its bounds, so that all seats are
 * given out: `sum(clamp(factor * target, lower, upper)) = seats`.
 *
 * Source: KEP-1040; k8s.io/apiserver `pkg/util/flowcontrol/{conc_alloc,apf_controller}.go`. There the factor is found by sorting
 * the bounds, here by bisection: the sum grows with the factor.
 */

export interface SeatClaim {
  /** Never below this: the lesser of the nominal share and of the most that was asked for lately, and no less than `minSeats`. */
  readonly lowerSeats: number;
  readonly upperSeats: number;
  /** Smoothed demand, at least `lowerSeats`. */
  readonly targetSeats: number;
  /** What the level never lends. */
  readonly minSeats: number;
}

const STEPS = 60;

/** Seats of each claim, rounded as the original does: they may add up to some more or less than `seats`. */
export function allocateSeats(claims: readonly SeatClaim[], seats: number): readonly number[] {
  const minSum = sumOf(claims.map(({ minSeats }) => minSeats));
  const lowerSum = sumOf(claims.map(({ lowerSeats }) => lowerSeats));
  if (seats <= minSum) return claims.map(({ minSeats }) => minSeats);
  if (seats <= lowerSum) {
    const share = (seats - minSum) / (lowerSum - minSum);
    return claims.map(({ minSeats, lowerSeats }) => minSeats + Math.round((lowerSeats - minSeats) * share));
  }
  const factor = factorFor(claims, seats);
  return claims.map((claim) => Math.round(clamped(claim, factor)));
}

function factorFor(claims: readonly SeatClaim[], seats: number): number {
  let low = 0;
  let high = 1;
  const sumAt = (factor: number): number => sumOf(claims.map((claim) => clamped(claim, factor)));
  for (let step = 0; step < STEPS && sumAt(high) < seats; step++) high *= 2;
  for (let step = 0; step < STEPS; step++) {
    const middle = (low + high) / 2;
    if (sumAt(middle) < seats) low = middle;
    else high = middle;
  }
  return high;
}

/** A target of nothing counts as a thousandth, as in the original: its level may still get what nobody else wants. */
function clamped({ lowerSeats, upperSeats, targetSeats }: SeatClaim, factor: number): number {
  return Math.min(upperSeats, Math.max(lowerSeats, factor * Math.max(0.001, targetSeats)));
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
