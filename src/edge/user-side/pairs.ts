/**
 * Requests of which both sides tell: what the gateway says of one, and what its user says. A beacon usually comes after the
 * gateway's own end; of a user who gave up it may come before. Either waits for the other within a bound.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { UserSideSample } from '../../core/signals/user-side.ts';
import { WindowedCount } from './windowed-count.ts';
import { WindowedQuantiles } from './windowed-quantiles.ts';

/** Ends that wait for a beacon: a quarter of a minute at a thousand requests a second; about 2 MB. */
export const ENDS_MAX = 16_384;
/** Beacons that wait for the end of their request. */
export const EARLY_MAX = 4_096;

export interface OneSide {
  /** Of the last byte; -1 where it never came. */
  readonly completionUs: DurationUs;
  readonly isBad: boolean;
}

/** The gateway's side. */
export interface ServerSide extends OneSide {
  /** Of the trace that it is in, or ''. */
  readonly traceId: string;
}

export class Pairs {
  readonly #ends: Map<string, ServerSide> = new Map();
  readonly #early: Map<string, OneSide> = new Map();
  readonly #told = new WindowedCount();
  readonly #toldBad = new WindowedCount();
  readonly #serverBad = new WindowedCount();
  readonly #client = new WindowedQuantiles();
  readonly #server = new WindowedQuantiles();

  serverTold(publicId: string, server: ServerSide, at: MonoUs): void {
    const client = this.#early.get(publicId);
    if (client === undefined) return keep(this.#ends, publicId, server, ENDS_MAX);
    this.#early.delete(publicId);
    this.#pair(client, server, at);
  }

  /** Returns what the gateway said of it, where it has. */
  clientTold(publicId: string, client: OneSide, at: MonoUs): ServerSide | undefined {
    const server = this.#ends.get(publicId);
    if (server === undefined) keep(this.#early, publicId, client, EARLY_MAX);
    else {
      this.#ends.delete(publicId);
      this.#pair(client, server, at);
    }
    return server;
  }

  /** Undefined while no request is told of by both. */
  sample(at: MonoUs): UserSideSample | undefined {
    const told = this.#told.read(at);
    if (told === 0) return undefined;
    return {
      told,
      toldBad: this.#toldBad.read(at),
      serverBad: this.#serverBad.read(at),
      clientP95Ms: this.#client.read(at).p95Ms ?? 0,
      serverP95Ms: this.#server.read(at).p95Ms ?? 0,
    };
  }

  #pair(client: OneSide, server: OneSide, at: MonoUs): void {
    this.#told.add(at);
    if (client.isBad) this.#toldBad.add(at);
    if (server.isBad) this.#serverBad.add(at);
    if (client.completionUs < 0 || server.completionUs < 0) return;
    this.#client.add(client.completionUs, at);
    this.#server.add(server.completionUs, at);
  }
}

function keep<Side>(sides: Map<string, Side>, publicId: string, side: Side, max: number): void {
  if (sides.size >= max) {
    const oldest = sides.keys().next();
    if (!oldest.done) sides.delete(oldest.value);
  }
  sides.set(publicId, side);
}
