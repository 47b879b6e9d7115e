/** Mutants of what traces and the user's side promise; see `list.ts`. */
import type { Mutant } from './mutant.ts';

const SIDE = 'src/edge/user-side';
const DESK = `${SIDE}/beacon-desk.test.ts`;
const USERS = `${SIDE}/user-side.test.ts`;
const TRACES = 'src/adapters/tracing-otlp';
const SOCKETS = 'test/integration/tracing.test.ts';

export const USER_SIDE_MUTANTS: readonly Mutant[] = [
  {
    name: 'believe-any-token',
    invariant: 0,
    file: `${SIDE}/beacon-token.ts`,
    original: 'given.length !== MAC_BYTES || !timingSafeEqual(given, this.#mac(said))',
    mutated: 'given.length !== MAC_BYTES',
    killer: DESK,
    titles: 'a beacon > needs a token of ours',
  },
  {
    name: 'take-a-beacon-twice',
    invariant: 0,
    file: `${SIDE}/beacon-desk.ts`,
    original: "    if (this.#used.has(beacon.id)) return 'reused';\n",
    mutated: '',
    killer: DESK,
    titles: 'a beacon > is taken once',
  },
  {
    name: 'take-a-beacon-about-another-request',
    invariant: 0,
    file: `${SIDE}/beacon-desk.ts`,
    original: "    if (token.publicId !== beacon.id) return 'other-request';\n",
    mutated: '',
    killer: DESK,
    titles: 'a beacon > does not count for another request',
  },
  {
    name: 'forget-used-tokens-for-new-ones',
    invariant: 4,
    file: `${SIDE}/beacon-desk.ts`,
    original: 'if (this.#used.size >= (this.#options.usedMax ?? USED_MAX) || !this',
    mutated: 'if (!this',
    killer: DESK,
    titles: 'a beacon > is used up',
  },
  {
    name: 'let-forged-beacons-use-up-the-rate',
    invariant: 0,
    file: `${SIDE}/beacon-desk.ts`,
    original: "    if (verdict.kind !== 'good') return verdict.kind;\n",
    mutated:
      "    if (verdict.kind !== 'good') {\n      this.#inSecond += 1;\n      return verdict.kind;\n    }\n    this.#second = Math.floor(now / US_PER_S);\n",
    killer: DESK,
    titles: 'the rates > are not used up',
  },
  {
    name: 'count-one-tenant-for-all',
    invariant: 0,
    file: `${SIDE}/beacon-desk.ts`,
    original: 'this.#inSecond >= ratePerS || own >= tenantRatePerS',
    mutated: 'this.#inSecond >= ratePerS',
    killer: DESK,
    titles: 'the rates > hold for one tenant',
  },
  {
    name: 'believe-impossible-times',
    invariant: 0,
    file: `${SIDE}/beacon.ts`,
    original: 'if ((firstByteMs ?? 0) > longestMs || (completionMs ?? 0) > longestMs) return false;',
    mutated: '',
    killer: DESK,
    titles: 'a beacon > is refused with times',
  },
  {
    name: 'call-a-broken-connection-complete',
    invariant: 0,
    file: `${SIDE}/user-side.ts`,
    original: 'row.socket.completion.add(sinceReceipt(over, over.clientHasAllAt), now)',
    mutated: 'row.socket.completion.add(sinceReceipt(over, over.endedAt), now)',
    killer: USERS,
    titles: 'UserSide > counts who left',
  },
  {
    name: 'compare-only-beacons-that-come-late',
    invariant: 0,
    file: `${SIDE}/pairs.ts`,
    original: 'keep(this.#early, publicId, client, EARLY_MAX)',
    mutated: 'void EARLY_MAX',
    killer: USERS,
    titles: 'UserSide > tells of requests',
  },
  {
    name: 'keep-ends-without-bound',
    invariant: 4,
    file: `${SIDE}/pairs.ts`,
    original: 'if (sides.size >= max) {',
    mutated: 'if (sides.size >= 1e9 * max + 1e9) {',
    killer: USERS,
    titles: 'Pairs > forget the oldest end',
  },
  {
    name: 'keep-spans-without-bound',
    invariant: 4,
    file: `${TRACES}/span-queue.ts`,
    original: 'this.#waiting.length >= this.#options.queueSpansMax',
    mutated: 'this.#waiting.length >= 1e9 * this.#options.queueSpansMax',
    killer: `${TRACES}/span-queue.test.ts`,
    titles: 'SpanQueue > holds its bound',
  },
  {
    name: 'record-what-a-client-asks-to-record',
    invariant: 0,
    file: `${TRACES}/index.ts`,
    original: 'if (Math.random() >= sampleRatio) return',
    mutated: 'if (client?.sampled !== true && Math.random() >= sampleRatio) return',
    killer: SOCKETS,
    titles: 'what is not sampled > is not exported whatever',
  },
  {
    name: 'pass-a-client-s-span-to-the-node',
    invariant: 0,
    file: 'src/edge/exchange/exchange.ts',
    original: "trace === undefined ? forwarded : [...forwarded, 'traceparent', trace.traceparent]",
    mutated: 'trace === undefined ? forwarded : forwarded',
    killer: SOCKETS,
    titles: 'a traced request that is retried > is one span',
  },
];
