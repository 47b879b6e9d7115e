/** `GET /spillway/v1/user-side`: percentiles of the server, of clients' connections, and of users, side by side, by class. */
import type { DurationMs, WallMs } from '../../base/units.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { BeaconDesk } from '../user-side/beacon-desk.ts';
import type { PoorlyServed } from '../user-side/poorly-served.ts';
import type { ClassView, SideView } from '../user-side/user-side.ts';
import { type Quantiles, WINDOW_US } from '../user-side/windowed-quantiles.ts';
import { sendJson } from './reply.ts';
import type { Route } from './route.ts';

export interface UserSideOptions {
  readonly beacons: BeaconDesk;
  readonly gateway: Gateway;
  wallMs(): number;
}

export function userSideRoute(options: UserSideOptions): Route {
  return {
    scope: 'admin',
    methods: { GET: ({ res }) => sendJson(res, 200, wireUserSide(options)) },
  };
}

function wireUserSide({ beacons, gateway, wallMs }: UserSideOptions): unknown {
  const now = gateway.now();
  const names = gateway.config.scheduler.classes.map(({ name }) => name);
  const seen = beacons.userSide.view(now).toSorted((a, b) => names.indexOf(a.class) - names.indexOf(b.class));
  return {
    windowsMs: [WINDOW_US / 1_000, (2 * WINDOW_US) / 1_000],
    beaconsTaken: beacons.config.enabled,
    beacons: beacons.counts,
    pairs: beacons.userSide.sample(now) ?? null,
    classes: seen.map(wireClass),
    poorlyServed: beacons.userSide
      .poorlyServed()
      .map((one) => wirePoorly(one, wallMs() - (now - one.at) / 1_000)),
  };
}

/** What the page told, and what the gateway knows of the same request. */
function wirePoorly({ className, beacon, server }: PoorlyServed, atMs: WallMs): unknown {
  const { id, outcome, firstByteMs, completionMs, traceId, session } = beacon;
  return {
    id,
    class: className,
    at: Math.round(atMs),
    outcome,
    firstByteMs: firstByteMs ?? null,
    completionMs: completionMs ?? null,
    server:
      server === undefined
        ? null
        : { completionMs: server.completionUs < 0 ? null : server.completionUs / 1_000, isBad: server.isBad },
    traceId: traceId === '' ? (server?.traceId ?? '') : traceId,
    session,
  };
}

function wireClass({ server, socket, users, ...counts }: ClassView): unknown {
  const { class: name, left, outcomes, retriesAnnounced, bodiesRepeated } = counts;
  return {
    class: name,
    server: wireSide(server),
    socket: wireSide(socket),
    users: { ...wireSide(users), outcomes },
    gap: {
      firstByteMs: gapOf(server.firstByte, users.firstByte),
      completionMs: gapOf(server.completion, users.completion),
    },
    left,
    retries: { announced: retriesAnnounced, repeatedBodies: bodiesRepeated },
  };
}

interface WireSide {
  readonly firstByteMs: WireQuantiles;
  readonly completionMs: WireQuantiles;
}

/** Null where there is nothing yet. */
interface WireQuantiles {
  readonly count: number;
  readonly p50: DurationMs | null;
  readonly p95: DurationMs | null;
  readonly p99: DurationMs | null;
}

function wireSide({ firstByte, completion }: SideView): WireSide {
  return { firstByteMs: wireQuantiles(firstByte), completionMs: wireQuantiles(completion) };
}

function wireQuantiles({ count, p50Ms, p95Ms, p99Ms }: Quantiles): WireQuantiles {
  return { count, p50: p50Ms ?? null, p95: p95Ms ?? null, p99: p99Ms ?? null };
}

/** How much later users see it than the server says; null where either side knows nothing. */
function gapOf(server: Quantiles, users: Quantiles): Omit<WireQuantiles, 'count'> {
  const gap = (a: DurationMs | undefined, b: DurationMs | undefined): DurationMs | null =>
    a === undefined || b === undefined ? null : Number((b - a).toPrecision(4));
  return {
    p50: gap(server.p50Ms, users.p50Ms),
    p95: gap(server.p95Ms, users.p95Ms),
    p99: gap(server.p99Ms, users.p99Ms),
  };
}
