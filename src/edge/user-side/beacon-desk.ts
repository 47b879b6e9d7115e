/**
 * Where beacons are judged: is the token ours, young, of this request, and used for the first time; can the times be true;
 * do not too many come. What passes is told to the user's side; what does not is counted by its kind.
 *
 * The rates count only beacons with a good token, so that whoever has none cannot use them up. What is remembered of used
 * tokens is bounded: where there is no room, a beacon is refused rather than a token forgotten, since it could be used again.
 */
import { US_PER_S, type DurationMs, type MonoUs } from '../../base/units.ts';
import type { RumConfig } from '../../core/config/types.ts';
import type { BeaconResult, MetricsSink } from '../../ports/metrics-sink.ts';
import { type Beacon, isPlausible, parseBeacon } from './beacon.ts';
import { type BeaconSubject, BeaconTokens, type ReadToken } from './beacon-token.ts';
import type { UserSide } from './user-side.ts';

/** Tokens that were used and have not expired: about 8 MB. */
export const USED_MAX = 65_536;

/** Carries the token with an answer. */
export const BEACON_HEADER = 'x-spillway-beacon';

export interface BeaconDeskOptions {
  config(): RumConfig;
  now(): MonoUs;
  readonly userSide: UserSide;
  readonly metrics: MetricsSink;
  /** For tests; otherwise `USED_MAX`. */
  readonly usedMax?: number;
}

export class BeaconDesk {
  readonly #options: BeaconDeskOptions;
  readonly #tokens = new BeaconTokens();
  /** When each request was told of, the oldest first. */
  readonly #used: Map<string, MonoUs> = new Map();
  /** Beacons of this second, in all and by tenant; bounded by what a second may have. */
  readonly #byTenant: Map<string, number> = new Map();
  readonly #counts: Partial<Record<BeaconResult, number>> = {};
  #ttlMsMax = 0;
  #second = -1;
  #inSecond = 0;

  constructor(options: BeaconDeskOptions) {
    this.#options = options;
  }

  get userSide(): UserSide {
    return this.#options.userSide;
  }

  get config(): RumConfig {
    return this.#options.config();
  }

  /** Since the start, by what became of them. */
  get counts(): Readonly<Partial<Record<BeaconResult, number>>> {
    return this.#counts;
  }

  /** For the head of an answer; '' where beacons are not taken. */
  tokenFor(subject: BeaconSubject): string {
    const { enabled, tokenMs } = this.config;
    return enabled ? this.#tokens.issue(subject, this.#options.now(), tokenMs) : '';
  }

  /** A body that came; bounded by who read it. */
  take(body: Buffer): BeaconResult {
    const beacon = parseBeacon(body);
    const result = beacon === undefined ? 'unreadable' : this.#judge(beacon);
    this.#counts[result] = (this.#counts[result] ?? 0) + 1;
    this.#options.metrics.beacon(result);
    return result;
  }

  #judge(beacon: Beacon): BeaconResult {
    const now = this.#options.now();
    const verdict = this.#tokens.read(beacon.token, now);
    if (verdict.kind !== 'good') return verdict.kind;
    const { token } = verdict;
    if (token.publicId !== beacon.id) return 'other-request';
    this.#forget(now);
    if (this.#used.has(beacon.id)) return 'reused';
    if (!isPlausible(beacon, token.receivedAt, now)) return 'implausible';
    if (this.#used.size >= (this.#options.usedMax ?? USED_MAX) || !this.#hasRate(token, now))
      return 'rate-limited';
    this.#used.set(beacon.id, now);
    this.#accept(beacon, token, now);
    return 'accepted';
  }

  #accept(beacon: Beacon, { className }: ReadToken, now: MonoUs): void {
    const { userSide, metrics } = this.#options;
    userSide.told(className, beacon, now);
    const { firstByteMs, completionMs } = beacon;
    if (firstByteMs !== undefined) metrics.userFirstByte(className, inSeconds(firstByteMs));
    if (completionMs !== undefined) metrics.userRequest(className, inSeconds(completionMs));
  }

  #hasRate({ tenantTag }: ReadToken, now: MonoUs): boolean {
    const { ratePerS, tenantRatePerS } = this.config;
    const second = Math.floor(now / US_PER_S);
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
      this.#byTenant.clear();
    }
    const own = this.#byTenant.get(tenantTag) ?? 0;
    if (this.#inSecond >= ratePerS || own >= tenantRatePerS) return false;
    this.#inSecond += 1;
    this.#byTenant.set(tenantTag, own + 1);
    return true;
  }

  /** A used token is remembered until it has expired for sure: as long after its use as it may live. */
  #forget(now: MonoUs): void {
    this.#ttlMsMax = Math.max(this.#ttlMsMax, this.config.tokenMs);
    const ttlUs = this.#ttlMsMax * 1_000;
    for (const [id, at] of this.#used) {
      if (now - at <= ttlUs) return;
      this.#used.delete(id);
    }
  }
}

function inSeconds(ms: DurationMs): number {
  return ms / 1_000;
}
