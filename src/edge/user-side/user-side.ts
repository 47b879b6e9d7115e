/**
 * What clients saw, beside what the server says of the same classes, over the last five to ten minutes:
 *
 *   server    head read ──► the node's first content byte ──► the outcome: what metrics and panels show
 *   socket    head read ──► first content byte handed to the connection ──► it took the last one
 *   users     the page's request ──► its first byte ──► its last one, as beacons tell
 *
 * A gap between server and socket is the client's connection or the gateway itself; one between socket and users is the
 * network, the application in front, or a page that waits for something else. Beside them are counted clients that leave, by
 * what they were waiting for, and clients that try again.
 *
 * Bounded by `CLASSES_MAX` classes of six histograms (about 20 KB a class). O(1) per request.
 */
import type { ClassName, DurationUs, MonoUs } from '../../base/units.ts';
import type { UserSideSample } from '../../core/signals/user-side.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import type { Beacon, UserOutcome } from './beacon.ts';
import { Pairs } from './pairs.ts';
import { type PoorlyServed, PoorlyServedUsers } from './poorly-served.ts';
import { type Repeatable, RepeatWatch } from './repeat-watch.ts';
import { type Quantiles, WindowedQuantiles } from './windowed-quantiles.ts';

/** As many as a configuration may name; those of an earlier configuration are kept while there is room. */
export const CLASSES_MAX = 16;

/** What the client was waiting for when it left; `stalled` is one that was cut because it took nothing. */
export const LEFT_WHILE = ['queued', 'running', 'streaming', 'sending', 'stalled'] as const;
export type LeftWhile = (typeof LEFT_WHILE)[number];

/** A request at its start. */
export interface BegunRequest extends Repeatable {
  readonly className: ClassName;
  readonly retryCount: number;
  readonly receivedAt: MonoUs;
}

/** A request when it is over for server and client. Instants; -1 where it never happened. */
export interface OverRequest extends BegunRequest {
  readonly publicId: string;
  /** As the metrics count it. */
  readonly outcome: string;
  readonly nodeFirstByteAt: MonoUs;
  readonly endedAt: MonoUs;
  readonly clientFirstByteAt: MonoUs;
  /** Its connection took the last byte. */
  readonly clientHasAllAt: MonoUs;
  readonly leftWhile: LeftWhile | '';
  /** It got a token: a beacon may come. */
  readonly hasToken: boolean;
  /** Of the trace that it is in, or ''. */
  readonly traceId: string;
}

interface Side {
  readonly firstByte: WindowedQuantiles;
  readonly completion: WindowedQuantiles;
}

interface ClassRow {
  readonly server: Side;
  readonly socket: Side;
  readonly users: Side;
  readonly left: Record<LeftWhile, number>;
  readonly outcomes: Record<UserOutcome, number>;
  retriesAnnounced: number;
  bodiesRepeated: number;
}

export interface SideView {
  readonly firstByte: Quantiles;
  readonly completion: Quantiles;
}

export interface ClassView {
  readonly class: ClassName;
  readonly server: SideView;
  readonly socket: SideView;
  readonly users: SideView;
  /** Since the start. */
  readonly left: Readonly<Record<LeftWhile, number>>;
  readonly outcomes: Readonly<Record<UserOutcome, number>>;
  readonly retriesAnnounced: number;
  readonly bodiesRepeated: number;
}

/** Whose answers count as completed. */
const ANSWERED: ReadonlySet<string> = new Set(['served', 'degraded', 'declined']);

export class UserSide {
  readonly #rows: Map<ClassName, ClassRow> = new Map();
  readonly #pairs = new Pairs();
  readonly #repeats = new RepeatWatch();
  readonly #poorly = new PoorlyServedUsers();
  readonly #metrics: MetricsSink;

  constructor(metrics: MetricsSink) {
    this.#metrics = metrics;
  }

  begun(request: BegunRequest, now: MonoUs): void {
    const isAnnounced = request.retryCount > 0;
    const isRepeated = this.#repeats.isRepeat(request, now);
    if (!isAnnounced && !isRepeated) return;
    const row = this.#row(request.className);
    if (isAnnounced) {
      this.#metrics.clientRetried(request.className, 'announced');
      if (row !== undefined) row.retriesAnnounced += 1;
    }
    if (!isRepeated) return;
    this.#metrics.clientRetried(request.className, 'repeated');
    if (row !== undefined) row.bodiesRepeated += 1;
  }

  over(over: OverRequest, now: MonoUs): void {
    const { leftWhile, outcome } = over;
    if (leftWhile !== '') this.#metrics.clientLeft(leftWhile);
    const isAnswered = ANSWERED.has(outcome);
    if (!isAnswered) this.#repeats.endedBadly(over, now);
    const completionUs = isAnswered ? sinceReceipt(over, over.endedAt) : -1;
    if (over.hasToken) {
      const isBad = !isAnswered && outcome !== 'cancelled';
      this.#pairs.serverTold(over.publicId, { completionUs, isBad, traceId: over.traceId }, now);
    }
    const row = this.#row(over.className);
    if (row === undefined) return;
    if (leftWhile !== '') row.left[leftWhile] += 1;
    row.server.firstByte.add(sinceReceipt(over, over.nodeFirstByteAt), now);
    row.server.completion.add(completionUs, now);
    row.socket.firstByte.add(sinceReceipt(over, over.clientFirstByteAt), now);
    if (isAnswered) row.socket.completion.add(sinceReceipt(over, over.clientHasAllAt), now);
  }

  /** A beacon whose token was good. */
  told(className: ClassName, beacon: Beacon, now: MonoUs): void {
    const { id, outcome, firstByteMs, completionMs } = beacon;
    const completionUs = completionMs === undefined ? -1 : completionMs * 1_000;
    const server = this.#pairs.clientTold(id, { completionUs, isBad: outcome !== 'ok' }, now);
    const row = this.#row(className);
    if (row === undefined) return;
    this.#poorly.look({ className, beacon, server, at: now }, row.users.completion.read(now));
    row.outcomes[outcome] += 1;
    if (firstByteMs !== undefined) row.users.firstByte.add(firstByteMs * 1_000, now);
    if (completionMs !== undefined) row.users.completion.add(completionUs, now);
  }

  view(now: MonoUs): readonly ClassView[] {
    return Array.from(this.#rows, ([name, row]) => ({
      class: name,
      server: sideView(row.server, now),
      socket: sideView(row.socket, now),
      users: sideView(row.users, now),
      left: row.left,
      outcomes: row.outcomes,
      retriesAnnounced: row.retriesAnnounced,
      bodiesRepeated: row.bodiesRepeated,
    }));
  }

  /** The last users who were served poorly, the newest first. */
  poorlyServed(): readonly PoorlyServed[] {
    return this.#poorly.list();
  }

  /** For the detector of service levels that hold on the server only. */
  sample(now: MonoUs): UserSideSample | undefined {
    return this.#pairs.sample(now);
  }

  #row(className: ClassName): ClassRow | undefined {
    const known = this.#rows.get(className);
    if (known !== undefined || this.#rows.size >= CLASSES_MAX) return known;
    const made: ClassRow = {
      server: newSide(),
      socket: newSide(),
      users: newSide(),
      left: { queued: 0, running: 0, streaming: 0, sending: 0, stalled: 0 },
      outcomes: { ok: 0, failed: 0, timeout: 0, abandoned: 0 },
      retriesAnnounced: 0,
      bodiesRepeated: 0,
    };
    this.#rows.set(className, made);
    return made;
  }
}

/** -1 where it never happened. */
function sinceReceipt({ receivedAt }: OverRequest, at: MonoUs): DurationUs {
  return at < 0 ? -1 : Math.max(0, at - receivedAt);
}

function newSide(): Side {
  return { firstByte: new WindowedQuantiles(), completion: new WindowedQuantiles() };
}

function sideView({ firstByte, completion }: Side, now: MonoUs): SideView {
  return { firstByte: firstByte.read(now), completion: completion.read(now) };
}
