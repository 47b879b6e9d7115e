/**
 * `GET /watch`: the live picture as server-sent events.
 *
 * Watching must cost far less than serving, and a viewer must not be able to hurt. A picture is rendered once per beat
 * for all viewers, and pictures come less often where one takes long, so that all of them take at most
 * `WATCH_SHARE_MAX` of the time. A viewer whose socket still holds the last picture gets none: at most one picture and
 * one list of ids wait for it in the gateway's memory, both shared with the others. One that does not drain for
 * `WATCH_STALL_MS_MAX` is cut, and there are at most `WATCH_VIEWERS_MAX`.
 */
import type { ServerResponse } from 'node:http';
import { type DurationMs, type MonoUs, type Ratio, US_PER_MS, type WallMs } from '../../base/units.ts';
import type { Gateway } from '../../runtime/contract.ts';
import { createPictureSource, type Rendered } from './picture.ts';
import { sendProblem } from './reply.ts';
import { type Call, numberOf, type Route } from './route.ts';

/** Four pictures a second are more than an eye follows. */
const WATCH_EVERY_MS_MIN: DurationMs = 250;
const WATCH_EVERY_MS_DEFAULT: DurationMs = 1_000;
/** Proxies close what is silent for a minute. */
const WATCH_EVERY_MS_MAX: DurationMs = 30_000;
export const WATCH_VIEWERS_MAX = 32;
/** A phone may be in a tunnel; who is away for longer connects again. */
const WATCH_STALL_MS_MAX: DurationMs = 15_000;
/** Of one core, for rendering. */
const WATCH_SHARE_MAX = 0.02;
const RETRY_SECONDS = '5';

export interface WatchLimits {
  readonly everyMsMin: DurationMs;
  readonly stallMsMax: DurationMs;
  readonly shareMax: Ratio;
}

export interface WatchOptions {
  readonly gateway: Gateway;
  readonly wallMs: () => WallMs;
  /** Shorter ones for tests. */
  readonly limits?: WatchLimits;
}

export interface Watch {
  readonly route: Route;
  readonly viewers: number;
  /** Ends every viewer. */
  close(): void;
}

interface Viewer {
  readonly res: ServerResponse;
  readonly everyUs: MonoUs;
  dueAt: MonoUs;
  seen: Rendered | undefined;
  /** When it was first found with the last picture unread; undefined while it keeps up. */
  stalledAt: MonoUs | undefined;
}

const LIMITS: WatchLimits = {
  everyMsMin: WATCH_EVERY_MS_MIN,
  stallMsMax: WATCH_STALL_MS_MAX,
  shareMax: WATCH_SHARE_MAX,
};

export function createWatch(options: WatchOptions): Watch {
  const { gateway, limits = LIMITS } = options;
  const source = createPictureSource(gateway, options.wallMs);
  const viewers = new Set<Viewer>();
  let rendered: Rendered | undefined;
  /** No picture is rendered before. */
  let restUntil: MonoUs = 0;
  let beat: NodeJS.Timeout | undefined;

  function latest(now: MonoUs): Rendered {
    if (rendered !== undefined && now < restUntil) return rendered;
    rendered = source.render();
    const tookUs = gateway.now() - now;
    restUntil = now + Math.max(limits.everyMsMin * US_PER_MS * ALMOST, tookUs / limits.shareMax);
    return rendered;
  }

  function look(): void {
    const now = gateway.now();
    for (const viewer of viewers) {
      if (now < viewer.dueAt) continue;
      if (viewer.res.writableLength === 0) show(viewer, now);
      else {
        viewer.stalledAt ??= now;
        if (now - viewer.stalledAt >= limits.stallMsMax * US_PER_MS) viewer.res.destroy();
      }
    }
  }

  function show(viewer: Viewer, now: MonoUs): void {
    const picture = latest(now);
    viewer.stalledAt = undefined;
    if (picture === viewer.seen) return;
    viewer.dueAt = now + viewer.everyUs * ALMOST;
    if (viewer.seen?.fleet !== picture.fleet) viewer.res.write(picture.fleetEvent);
    viewer.seen = picture;
    viewer.res.write(picture.pictureEvent);
  }

  function add(call: Call): void {
    const { res, query } = call;
    const everyMs = numberOf(query, 'everyMs', {
      fallback: WATCH_EVERY_MS_DEFAULT,
      min: limits.everyMsMin,
      max: WATCH_EVERY_MS_MAX,
    });
    const viewer: Viewer = {
      res,
      everyUs: everyMs * US_PER_MS,
      dueAt: 0,
      seen: undefined,
      stalledAt: undefined,
    };
    viewers.add(viewer);
    res.on('close', () => remove(viewer));
    show(viewer, gateway.now());
    beat ??= setInterval(look, limits.everyMsMin);
  }

  function remove(viewer: Viewer): void {
    viewers.delete(viewer);
    if (viewers.size > 0) return;
    clearInterval(beat);
    beat = undefined;
  }

  return {
    route: {
      scope: 'admin',
      methods: {
        GET(call) {
          if (viewers.size >= WATCH_VIEWERS_MAX) return sendProblem(call.res, FULL);
          call.res.writeHead(200, HEAD);
          if (call.method === 'HEAD') call.res.end();
          else add(call);
        },
      },
    },
    get viewers() {
      return viewers.size;
    },
    close() {
      for (const viewer of viewers) viewer.res.end();
    },
  };
}

/** Timers come a little early or late: a viewer of every beat must not miss each second one. */
const ALMOST = 0.9;

const HEAD = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Some proxies gather answers before they pass them on.
  'x-accel-buffering': 'no',
};

const FULL = {
  status: 503,
  reason: 'viewers-max',
  detail: `At most ${WATCH_VIEWERS_MAX} viewers watch at once`,
  headers: { 'retry-after': RETRY_SECONDS },
};
