/**
 * What became of each user, a row for each, in columns of numbers: for questions about one and the same user under several
 * policies. A user is known again by stream and draw, which do not depend on a policy; its index does where users of a
 * closed loop come only after an answer.
 *
 * Bounded: at most as many rows as are asked for, never more than `USERS_LOGGED_MAX`; 74 bytes each. Who comes later is
 * counted and not kept, and the log says at whom it stopped.
 */
import { invariant } from '../../base/assert.ts';
import type { DurationUs, MonoUs, TenantId } from '../../base/units.ts';
import type { User, UserEnd } from '../clients/user.ts';
import type { FleetTimes, Supply } from '../oracle/fleet-times.ts';
import type { Ending } from './group.ts';

/** Of one run: 74 MB. */
export const USERS_LOGGED_MAX = 1_000_000;
const CAPACITY_MIN = 1_024;

/** In order of their codes in the column `end`. */
export const ENDS: readonly UserEnd['kind'][] = ['served', 'degraded', 'refused', 'failed', 'gave-up'];

/** All equally long, in order of arrival. */
export interface UserColumns {
  /** Position of the stream, and the user's number in it: who it is. */
  readonly stream: Uint16Array;
  readonly draw: Uint32Array;
  /** Positions in the lists of names. */
  readonly className: Uint8Array;
  readonly tenant: Uint32Array;
  readonly arrivedAt: Float64Array;
  readonly workUs: Float64Array;
  readonly deadlineUs: Float64Array;
  /** On the fastest node that offers the model, noise included: to the whole answer, and to what the deadline asks for. */
  readonly effortUs: Float64Array;
  readonly neededUs: Float64Array;
  readonly end: Uint8Array;
  readonly inTime: Uint8Array;
  /** Of the last attempt; -1 where there was none, or the run ended first. */
  readonly node: Int32Array;
  readonly tries: Uint16Array;
  /** First try to first dispatch of the try that was answered; -1 without an answer. */
  readonly waitUs: Float64Array;
  /** First try to the end, which is the whole answer for those who got one. */
  readonly endedUs: Float64Array;
}

/** Plain, so that it can be told from thread to thread. */
export interface UserRows {
  readonly columns: UserColumns;
  readonly count: number;
  /** Index over all streams of the user of row 0. */
  readonly firstIndex: number;
  /** Index of the first user who was not kept; -1 where all were. */
  readonly stoppedAt: number;
  readonly classes: readonly string[];
  readonly streams: readonly string[];
  readonly tenants: readonly TenantId[];
  readonly nodes: readonly string[];
  /** How fast the fleet does what they asked for, and when the run ended: for bounds of what any policy could do. */
  readonly supplies: readonly Supply[];
  readonly endedAt: MonoUs;
}

export interface UserLogOptions {
  readonly usersMax: number;
  readonly classes: readonly string[];
  readonly streams: readonly string[];
  readonly nodes: readonly string[];
  readonly times: FleetTimes;
}

export class UserLog {
  readonly #options: UserLogOptions;
  readonly #usersMax: number;
  readonly #tenants: Map<TenantId, number> = new Map();
  #columns = createColumns(CAPACITY_MIN);
  #count = 0;
  #firstIndex = -1;
  #stoppedAt = -1;

  constructor(options: UserLogOptions) {
    this.#options = options;
    this.#usersMax = Math.min(USERS_LOGGED_MAX, options.usersMax);
  }

  /** In order of index, none left out. */
  arrived(user: User): void {
    if (this.#firstIndex < 0) this.#firstIndex = user.index;
    if (this.#count >= this.#usersMax) {
      if (this.#stoppedAt < 0) this.#stoppedAt = user.index;
      return;
    }
    const row = this.#count++;
    invariant(user.index - this.#firstIndex === row, 'Users who count follow each other');
    if (row === this.#columns.draw.length) this.#columns = resized(this.#columns, 2 * row);
    const columns = this.#columns;
    columns.stream[row] = user.stream;
    columns.draw[row] = user.draw;
    columns.className[row] = this.#options.classes.indexOf(user.className);
    columns.tenant[row] = this.#tenantOf(user.tenant);
    columns.arrivedAt[row] = user.arrivedAt;
    columns.workUs[row] = user.workUs;
    columns.deadlineUs[row] = user.deadlineUs;
    const { effortUs, neededUs } = this.#options.times.of(user);
    columns.effortUs[row] = effortUs;
    columns.neededUs[row] = neededUs;
  }

  ended(
    user: User,
    ending: Ending,
    { node, afterUs }: { readonly node: number; readonly afterUs: DurationUs },
  ): void {
    const row = user.index - this.#firstIndex;
    if (row >= this.#count) return;
    const columns = this.#columns;
    const isAnswer = ending.kind === 'served' || ending.kind === 'degraded';
    columns.end[row] = ENDS.indexOf(ending.kind);
    columns.inTime[row] = ending.inTime ? 1 : 0;
    columns.node[row] = node;
    columns.tries[row] = user.tries;
    columns.waitUs[row] = isAnswer ? ending.wait.valueUs : -1;
    columns.endedUs[row] = afterUs;
  }

  rows(endedAt: MonoUs): UserRows {
    const { classes, streams, nodes, times } = this.#options;
    return {
      columns: resized(this.#columns, this.#count),
      count: this.#count,
      firstIndex: Math.max(0, this.#firstIndex),
      stoppedAt: this.#stoppedAt,
      classes,
      streams,
      nodes,
      tenants: [...this.#tenants.keys()],
      supplies: times.supplies(),
      endedAt,
    };
  }

  #tenantOf(id: TenantId): number {
    const known = this.#tenants.get(id);
    if (known !== undefined) return known;
    const number = this.#tenants.size;
    this.#tenants.set(id, number);
    return number;
  }
}

function createColumns(length: number): UserColumns {
  return {
    stream: new Uint16Array(length),
    draw: new Uint32Array(length),
    className: new Uint8Array(length),
    tenant: new Uint32Array(length),
    arrivedAt: new Float64Array(length),
    workUs: new Float64Array(length),
    deadlineUs: new Float64Array(length),
    effortUs: new Float64Array(length),
    neededUs: new Float64Array(length),
    end: new Uint8Array(length),
    inTime: new Uint8Array(length),
    node: new Int32Array(length),
    tries: new Uint16Array(length),
    waitUs: new Float64Array(length),
    endedUs: new Float64Array(length),
  };
}

function resized(columns: UserColumns, length: number): UserColumns {
  const next = createColumns(length);
  for (const key of Object.keys(next) as (keyof UserColumns)[])
    next[key].set(columns[key].subarray(0, length));
  return next;
}
