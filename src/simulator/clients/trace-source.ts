/**
 * Users of a trace of requests: they come when it says, on a clock that may run faster, and ask for what it says where the
 * stream takes its sizes from the trace. Class, tenant, model and patience are drawn, since traces tell none of them.
 */
import { HeapSlot } from '../../base/keyed-heap.ts';
import type { MonoUs } from '../../base/units.ts';
import type { Demand } from '../machines/machine.ts';
import type { TracePart } from '../scenario/types.ts';
import type { RateCourse } from './rate-course.ts';
import type { Size } from './sizes.ts';
import type { Source } from './source.ts';
import { demandOf, type TraceRow } from './traces/trace.ts';
import { TraceWalk } from './traces/trace-walk.ts';
import type { UserLaw } from './user-law.ts';
import type { UserRecord } from './user-record.ts';

export interface TraceSourceOptions {
  readonly law: UserLaw;
  readonly rows: readonly TraceRow[];
  readonly parts: readonly TracePart[];
  /** A clock of the trace's own microseconds. */
  readonly course: RateCourse;
  /** Undefined where sizes are drawn. */
  readonly sizeOf: ((demand: Demand) => Size) | undefined;
  readonly order: number;
}

export class TraceSource implements Source {
  readonly law: UserLaw;
  readonly place: HeapSlot<Source>;
  size: Size | undefined;
  nextAt: MonoUs = 0;
  draw = 0;
  modelBefore = -1;
  readonly #options: TraceSourceOptions;
  readonly #walk: TraceWalk<TraceRow>;
  readonly #blocksPerPass: number;
  /** Not rounded. */
  #at = 0;
  #traceAtUs = 0;

  constructor(options: TraceSourceOptions) {
    this.law = options.law;
    this.place = new HeapSlot<Source>(this, options.order);
    this.#options = options;
    this.#walk = new TraceWalk(options.rows, options.parts);
    this.#blocksPerPass = 1 + options.rows.reduce((most, { blocks }) => blocks?.reduce(max, most) ?? most, 0);
    this.#step();
  }

  take(user: UserRecord): void {
    this.law.draw(this, user);
    this.modelBefore = user.modelAt;
    this.draw += 1;
    this.#step();
  }

  #step(): void {
    const walk = this.#walk;
    const { course, sizeOf } = this.#options;
    walk.step();
    const row = walk.entry;
    this.#at =
      row === undefined ? Number.POSITIVE_INFINITY : course.after(this.#at, walk.atUs - this.#traceAtUs);
    this.#traceAtUs = walk.atUs;
    this.nextAt = Math.floor(this.#at);
    this.size = row === undefined ? undefined : sizeOf?.(demandOf(row, walk.pass * this.#blocksPerPass));
  }
}

function max(a: number, b: number): number {
  return Math.max(a, b);
}
