/**
 * Seats that a priority level asks for, over time: running and waiting requests. At each division of seats the mean plus one
 * standard deviation of the period is the envelope; the smoothed demand follows it up at once, and down by 2.3 % a period.
 *
 * Source: KEP-1040; k8s.io/apiserver `pkg/util/flowcontrol/apf_controller.go` and `fairqueuing/integrator.go`.
 */
import type { MonoUs } from '../../../base/units.ts';

const SMOOTHING = 0.977;

export class SeatDemand {
  smoothed = 0;
  /** Most in the period that was closed last. */
  highWatermark = 0;
  #beganAt: MonoUs = 0;
  #at: MonoUs = 0;
  #seats = 0;
  #most = 0;
  #sum = 0;
  #sumOfSquares = 0;

  set(seats: number, now: MonoUs): void {
    this.#advance(now);
    this.#seats = seats;
    this.#most = Math.max(this.#most, seats);
  }

  closePeriod(now: MonoUs): void {
    this.#advance(now);
    const spanUs = Math.max(1, now - this.#beganAt);
    const mean = this.#sum / spanUs;
    const variance = Math.max(0, this.#sumOfSquares / spanUs - mean * mean);
    const envelope = mean + Math.sqrt(variance);
    this.smoothed = Math.max(envelope, SMOOTHING * this.smoothed + (1 - SMOOTHING) * envelope);
    this.highWatermark = this.#most;
    this.#beganAt = now;
    this.#most = this.#seats;
    this.#sum = 0;
    this.#sumOfSquares = 0;
  }

  #advance(now: MonoUs): void {
    const spanUs = now - this.#at;
    this.#at = now;
    this.#sum += this.#seats * spanUs;
    this.#sumOfSquares += this.#seats * this.#seats * spanUs;
  }
}
