/** A count over the last minutes: of the window that runs and the one before it, as in `windowed-quantiles.ts`. */
import type { MonoUs } from '../../base/units.ts';
import { WINDOW_US } from './windowed-quantiles.ts';

export class WindowedCount {
  #now = 0;
  #before = 0;
  #window = -1;

  add(at: MonoUs): void {
    this.#turn(at);
    this.#now += 1;
  }

  read(at: MonoUs): number {
    this.#turn(at);
    return this.#now + this.#before;
  }

  #turn(at: MonoUs): void {
    const window = Math.floor(at / WINDOW_US);
    if (window <= this.#window) return;
    this.#before = window === this.#window + 1 ? this.#now : 0;
    this.#now = 0;
    this.#window = window;
  }
}
