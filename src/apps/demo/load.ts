/**
 * The load clients: they play the users of the plan against the gateway over real connections and record what each
 * user met. Runs in a process of its own, so that neither the gateway nor the fleet shares its event loop.
 */
import type { DurationMs } from '../../base/units.ts';
import { type ImageSize, imageWorkMs, seededUniform, seedFor, type Uniform } from '../../emulator/index.ts';
import { createHttpClient, type HttpCall, type HttpClient } from './http-client.ts';
import { isEmbedding, judgeImage } from './judge.ts';
import { type DemoPlan, EMBEDDING_MODEL_ID, IMAGE_MODEL_ID, lastArrivalMs } from './plan.ts';
import type { Told, Try, UserRecord } from './report.ts';
import { IMAGE_SIDE_PX, IMAGE_SIZES } from './sizes.ts';
import { type Stall, type StallWatch, watchStalls } from './stall-watch.ts';
import { type AttemptEnd, createUserStream, nextStep, type UserEnd, type UserWish } from './users.ts';

const CONNECTIONS_MAX = 18_000;
const EMBEDDING_TIMEOUT_MS = 20_000;
const EMBEDDING_TEXTS: readonly string[] = [
  'A cat sits on the mat',
  'The spike lasted forty-five minutes',
  'Queues grow when nobody says no',
];

/** Counters since the start, for the live view. */
export interface LoadTick {
  readonly users: number;
  readonly ended: Readonly<Record<UserEnd, number>>;
  readonly attempts: number;
  readonly refusedAttempts: number;
  readonly outstanding: number;
  readonly untypedErrors: number;
  readonly embeddingServed: number;
}

export interface LoadResult {
  readonly users: readonly UserRecord[];
  readonly untypedErrors: number;
  readonly untypedDetails: readonly string[];
  readonly peakOutstanding: number;
  readonly embedding: { readonly served: number; readonly failed: number };
  /** The longest time that this process was kept from running. */
  readonly stall: Stall;
}

export interface LoadOptions {
  readonly plan: DemoPlan;
  readonly host: string;
  readonly port: number;
  readonly embedding: boolean;
}

export interface Load {
  readonly finished: Promise<LoadResult>;
  tick(): LoadTick;
}

interface User {
  readonly wish: UserWish;
  firstAtMs: DurationMs;
  attempts: number;
  call: HttpCall | undefined;
  timer: NodeJS.Timeout | undefined;
  /** The first time that a refusal named, and when. */
  told: { readonly waitMs: DurationMs; readonly atMs: DurationMs } | undefined;
  /** When it was let in, after that; -1 when it was not. */
  letInAtMs: DurationMs;
  /** What became of each attempt. */
  readonly trail: Try[];
}

interface LoadState {
  readonly options: LoadOptions;
  readonly client: HttpClient;
  readonly uniform: Uniform;
  readonly startedAt: DurationMs;
  readonly stalls: StallWatch;
  readonly waiting: Set<User>;
  readonly records: UserRecord[];
  readonly ended: Record<UserEnd, number>;
  readonly untypedDetails: Map<string, number>;
  readonly heads: string;
  attempts: number;
  refusedAttempts: number;
  outstanding: number;
  peakOutstanding: number;
  untypedErrors: number;
  embeddingServed: number;
  embeddingFailed: number;
  embeddingOpen: number;
  started: number;
}

/** Kinds of untyped errors that are kept with their text; more are only counted. */
const UNTYPED_DETAILS_MAX = 20;

export function startLoad(options: LoadOptions): Load {
  const { host, port } = options;
  const state: LoadState = {
    options,
    client: createHttpClient({ host, port, connectionsMax: CONNECTIONS_MAX }),
    uniform: seededUniform(seedFor(options.plan.seed, 'thinking')),
    startedAt: performance.now(),
    stalls: watchStalls(),
    waiting: new Set(),
    records: [],
    ended: { served: 0, refused: 0, failed: 0, cancelled: 0 },
    untypedDetails: new Map(),
    heads: `host: ${host}:${port}\r\ncontent-type: application/json\r\n`,
    attempts: 0,
    refusedAttempts: 0,
    outstanding: 0,
    peakOutstanding: 0,
    untypedErrors: 0,
    embeddingServed: 0,
    embeddingFailed: 0,
    embeddingOpen: 0,
    started: 0,
  };
  return { finished: play(state), tick: () => tickOf(state) };
}

async function play(state: LoadState): Promise<LoadResult> {
  const { plan } = state.options;
  const embeddings = startEmbeddings(state);
  await arriveAll(state);
  const hangUpAtMs = lastArrivalMs(plan) + plan.drainMs;
  while ((state.waiting.size > 0 || state.embeddingOpen > 0) && elapsed(state) < hangUpAtMs) await pause(20);
  clearInterval(embeddings);
  for (const user of state.waiting) hangUp(state, user);
  state.client.close();
  return {
    users: state.records,
    untypedErrors: state.untypedErrors,
    untypedDetails: [...state.untypedDetails].map(([detail, times]) => `${times} x ${detail}`),
    peakOutstanding: state.peakOutstanding,
    embedding: { served: state.embeddingServed, failed: state.embeddingFailed + state.embeddingOpen },
    stall: state.stalls.stop(),
  };
}

function pause(ms: DurationMs): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function elapsed(state: LoadState): DurationMs {
  return performance.now() - state.startedAt;
}

/** Open loop: users come at their instants whatever the answers are; late ones are caught up at once. */
function arriveAll(state: LoadState): Promise<void> {
  const stream = createUserStream(state.options.plan);
  let next = stream.next();
  return new Promise((resolve) => {
    const step = (): void => {
      const now = elapsed(state);
      for (; next !== undefined && next.atMs <= now; next = stream.next()) arrive(state, next);
      if (next !== undefined) setTimeout(step, Math.max(1, next.atMs - now));
      else setTimeout(resolve, Math.max(0, lastArrivalMs(state.options.plan) - now));
    };
    step();
  });
}

function arrive(state: LoadState, wish: UserWish): void {
  const user: User = {
    wish,
    firstAtMs: elapsed(state),
    attempts: 0,
    call: undefined,
    timer: undefined,
    told: undefined,
    letInAtMs: -1,
    trail: [],
  };
  state.waiting.add(user);
  state.started += 1;
  attempt(state, user);
}

function attempt(state: LoadState, user: User): void {
  user.timer = undefined;
  user.attempts += 1;
  state.attempts += 1;
  state.outstanding += 1;
  state.peakOutstanding = Math.max(state.peakOutstanding, state.outstanding);
  const { wish } = user;
  const sentAtMs = elapsed(state);
  const { images } = sizeOf(wish);
  user.call = state.client.send(imageRequest(state, wish), wish.deadlineMs, (result) => {
    user.call = undefined;
    state.outstanding -= 1;
    const end = judgeImage(result, images);
    const endedAtMs = elapsed(state);
    noteTold(user, end, { sentAtMs, endedAtMs });
    user.trail.push({ sentAtMs, endedAtMs, kind: end.kind });
    if (end.kind === 'refused') state.refusedAttempts += 1;
    if (end.kind === 'failed' && !end.isTyped) {
      noteUntyped(state, result.kind === 'answer' ? `status ${result.answer.status}` : detailOf(result));
    }
    if (state.waiting.has(user)) afterAttempt(state, user, end);
  });
}

/** Whether the time that a refusal named came true is told by the attempts that follow: anything but a refusal was let in. */
function noteTold(
  user: User,
  end: AttemptEnd,
  { sentAtMs, endedAtMs }: { readonly sentAtMs: DurationMs; readonly endedAtMs: DurationMs },
): void {
  if (end.kind === 'refused') {
    if (end.retryAfterMs !== undefined) user.told ??= { waitMs: end.retryAfterMs, atMs: endedAtMs };
  } else if (user.told !== undefined && user.letInAtMs < 0) user.letInAtMs = sentAtMs;
}

function toldOf({ told, letInAtMs, wish, attempts }: User): Told | undefined {
  if (told === undefined) return undefined;
  const tookMs = letInAtMs < 0 ? -1 : letInAtMs - told.atMs;
  return { waitMs: told.waitMs, tookMs, cameBack: wish.isPatient && attempts > 1 };
}

function detailOf(result: { readonly kind: string; readonly detail?: string }): string {
  return result.detail ?? result.kind;
}

function noteUntyped(state: LoadState, detail: string): void {
  state.untypedErrors += 1;
  const seen = state.untypedDetails.get(detail);
  if (seen !== undefined || state.untypedDetails.size < UNTYPED_DETAILS_MAX) {
    state.untypedDetails.set(detail, (seen ?? 0) + 1);
  }
}

function afterAttempt(state: LoadState, user: User, end: AttemptEnd): void {
  const step = nextStep(end, {
    isPatient: user.wish.isPatient,
    attempts: user.attempts,
    thinkMs: state.options.plan.thinkMs,
    uniform: state.uniform,
  });
  if (step.kind === 'again') user.timer = setTimeout(() => attempt(state, user), step.afterMs);
  else leave(state, user, { as: step.as, end });
}

function leave(
  state: LoadState,
  user: User,
  { as, end }: { readonly as: UserEnd; readonly end: AttemptEnd | undefined },
): void {
  const served = end?.kind === 'served' ? end : undefined;
  state.waiting.delete(user);
  state.ended[as] += 1;
  state.records.push({
    classIndex: user.wish.classIndex,
    end: as,
    attempts: user.attempts,
    firstAtMs: user.firstAtMs,
    endedAtMs: elapsed(state),
    serviceMs: served?.serviceMs ?? 0,
    deadlineMs: user.wish.deadlineMs,
    workMs: served === undefined ? user.wish.workMs : doneWorkMs(state, user, served),
    consents: user.wish.consents,
    lesser: served?.lesser ?? '',
    isUnmarked: served !== undefined && served.lesser === '' && served.steps < sizeOf(user.wish).steps,
    told: toldOf(user),
    trail: user.trail,
  });
}

/** Work that the fleet did for this answer: less for a lesser one, none for one that was remembered. */
function doneWorkMs(
  state: LoadState,
  { wish }: User,
  { lesser, steps }: Extract<AttemptEnd, { kind: 'served' }>,
): DurationMs {
  if (lesser === 'cache') return 0;
  return imageWorkMs({ ...sizeOf(wish), steps }) / state.options.plan.speedup;
}

function sizeOf({ sizeIndex }: UserWish): ImageSize {
  return IMAGE_SIZES[sizeIndex] as ImageSize;
}

/** The run is over: who still waits for an answer, or to try again, gives up. */
function hangUp(state: LoadState, user: User): void {
  clearTimeout(user.timer);
  leave(state, user, { as: 'cancelled', end: undefined });
  user.call?.hangUp();
}

function imageRequest(state: LoadState, wish: UserWish): string {
  const size = sizeOf(wish);
  const className = state.options.plan.classes[wish.classIndex]?.name ?? '';
  const motif = wish.favourite === 0 ? `user ${wish.index}` : `favourite ${wish.favourite}`;
  const seed = wish.favourite === 0 ? '' : `"seed":${wish.favourite},`;
  const consent = wish.consents ? `x-spillway-degrade: cache, model, quality\r\n` : '';
  const body = `{"model":"${IMAGE_MODEL_ID}","prompt":"a lighthouse in a storm, ${motif}",${seed}"n":${size.images},"size":"${IMAGE_SIDE_PX}x${IMAGE_SIDE_PX}","steps":${size.steps},"response_format":"b64_json"}`;
  return `POST /v1/images/generations HTTP/1.1\r\n${state.heads}x-spillway-class: ${className}\r\n${consent}x-spillway-deadline-ms: ${wish.deadlineMs}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** A few real embeddings throughout. Undefined when there are no embedding nodes. */
function startEmbeddings(state: LoadState): NodeJS.Timeout | undefined {
  const { plan } = state.options;
  if (!state.options.embedding || plan.embeddingPerS <= 0) return undefined;
  let sent = 0;
  return setInterval(() => {
    if (elapsed(state) >= lastArrivalMs(plan)) return;
    sent += 1;
    sendEmbedding(state, EMBEDDING_TEXTS[sent % EMBEDDING_TEXTS.length] as string);
  }, 1_000 / plan.embeddingPerS);
}

function sendEmbedding(state: LoadState, input: string): void {
  state.embeddingOpen += 1;
  const body = JSON.stringify({ model: EMBEDDING_MODEL_ID, input, encoding_format: 'float' });
  const text = `POST /v1/embeddings HTTP/1.1\r\n${state.heads}x-spillway-deadline-ms: ${EMBEDDING_TIMEOUT_MS}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  state.client.send(text, EMBEDDING_TIMEOUT_MS, (result) => {
    state.embeddingOpen -= 1;
    if (isEmbedding(result)) state.embeddingServed += 1;
    else state.embeddingFailed += 1;
  });
}

function tickOf(state: LoadState): LoadTick {
  return {
    users: state.started,
    ended: { ...state.ended },
    attempts: state.attempts,
    refusedAttempts: state.refusedAttempts,
    outstanding: state.outstanding,
    untypedErrors: state.untypedErrors,
    embeddingServed: state.embeddingServed,
  };
}
