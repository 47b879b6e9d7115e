/**
 * `spillway top`: a running gateway on one screen. Pictures come over one stream that the gateway renders once for all its
 * viewers; rates and findings are asked for beside each picture. A gateway that goes away is waited for.
 */
import { AdminRefusal, type AdminOptions, openAdmin } from '../admin-client.ts';
import { CliError, DONE } from '../exit.ts';
import { say, sayJson, terminalWidth } from '../output.ts';
import { askSignals } from '../signals.ts';
import type { Environment } from '../state.ts';
import { pictures, type Seen } from './picture-stream.ts';
import { type CountSample, countsOf, withSample } from './rates.ts';
import { type Key, openScreen, type Screen } from './screen.ts';
import { scrolled, statusLine, WATCH_SECONDS } from './showing.ts';
import { topParts } from './top-lines.ts';
import { type Sort, SORTS, type TopInputs, topView } from './top-view.ts';

export interface TopOptions extends AdminOptions {
  /** Seconds between two pictures. */
  readonly every?: number;
}

/** Between two tries to reach a gateway that is away. */
const RETRY_MS = 1_000;
/** The shortest time over which rates say something, for one print. */
const ONCE_MS = 1_000;
const ASIDE_MS = 5_000;
const KEYS = 'q quit  s sort by';

export async function top(options: TopOptions, environment: Environment): Promise<number> {
  if (options.json !== true && process.stdout.isTTY) return keepShowing(options, environment);
  const aborter = new AbortController();
  const look = createLook(options, environment);
  let looks = 0;
  let inputs: TopInputs | undefined;
  const watching = { everyMs: ONCE_MS, signal: aborter.signal };
  for await (const seen of pictures(options, environment, watching)) {
    inputs = await look(seen);
    looks += 1;
    if (looks === 2) break;
  }
  if (inputs === undefined) throw new CliError('The gateway ended the stream before its first picture');
  const view = topView(inputs, 'drain');
  if (options.json === true) sayJson(view);
  else {
    const { head, nodes } = topParts(view, { columns: terminalWidth() });
    say([...head, ...nodes].map(({ text }) => text).join('\n'));
  }
  return DONE;
}

/** Completes a picture with what it does not hold. */
function createLook(options: AdminOptions, environment: Environment): (seen: Seen) => Promise<TopInputs> {
  let samples: readonly CountSample[] = [];
  return async (seen) => {
    const signal = AbortSignal.timeout(ASIDE_MS);
    const [page, found] = await Promise.all([
      openAdmin('/metrics', options, environment, { signal }).then((response) => response.text()),
      askSignals(options, environment),
    ]);
    samples = withSample(samples, { at: seen.picture.at, byClass: countsOf(page) });
    return { ...seen, samples, signals: found?.signals };
  };
}

interface TopState {
  inputs: TopInputs | undefined;
  sort: Sort;
  offset: number;
  problem: string;
  /** When the last picture came. */
  at: number;
}

async function keepShowing(options: TopOptions, environment: Environment): Promise<number> {
  const aborter = new AbortController();
  const { signal } = aborter;
  const state: TopState = { inputs: undefined, sort: 'drain', offset: 0, problem: '', at: Date.now() };
  const draw = (): void => drawTop(screen, state);
  const everyMs = Math.round((options.every ?? WATCH_SECONDS) * 1_000);
  const screen = openScreen({
    key(key) {
      pressed(state, key, screen.size.rows);
      draw();
    },
    resized: draw,
    ended: () => aborter.abort(),
  });
  const open = (): AsyncGenerator<Seen> => pictures(options, environment, { everyMs, signal });
  try {
    await follow({ state, draw, signal, open, look: createLook(options, environment) });
  } finally {
    screen.close();
  }
  return DONE;
}

interface Following {
  readonly state: TopState;
  readonly draw: () => void;
  /** Aborted: the viewer has seen enough. */
  readonly signal: AbortSignal;
  readonly open: () => AsyncGenerator<Seen>;
  readonly look: (seen: Seen) => Promise<TopInputs>;
}

async function follow({ state, draw, signal, open, look }: Following): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const seen of open()) {
        state.inputs = await look(seen);
        state.problem = '';
        state.at = Date.now();
        draw();
      }
      state.problem = 'The gateway ended the stream';
    } catch (error) {
      if (isFinal(error, state)) throw error;
      state.problem = error instanceof Error ? error.message : String(error);
    }
    draw();
    await pause(RETRY_MS, signal);
  }
}

/** A gateway that was never there, or does not let us look. */
function isFinal(error: unknown, { inputs }: TopState): boolean {
  return inputs === undefined || (error instanceof AdminRefusal && FINAL.has(error.status));
}

const FINAL: ReadonlySet<number> = new Set([401, 403, 404]);

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

function pressed(state: TopState, key: Key, rows: number): void {
  if (key === 's' || key === 'right') state.sort = sortAfter(state.sort, 1);
  else if (key === 'left') state.sort = sortAfter(state.sort, SORTS.length - 1);
  else state.offset = scrolled(state.offset, key, rows);
}

function sortAfter(sort: Sort, steps: number): Sort {
  return SORTS[(SORTS.indexOf(sort) + steps) % SORTS.length] as Sort;
}

function drawTop(screen: Screen, state: TopState): void {
  if (state.inputs === undefined) return screen.draw([statusLine(state, KEYS)]);
  const { size } = screen;
  const { head, nodes } = topParts(topView(state.inputs, state.sort), size);
  const [nodeHead = { text: '' }, ...rows] = nodes;
  const room = Math.max(1, size.rows - head.length - 2);
  state.offset = Math.min(state.offset, Math.max(0, rows.length - room));
  const seen = rows.slice(state.offset, state.offset + room);
  const status = statusLine(state, `${KEYS} (${state.sort})  ↑↓ scroll`);
  const body = [...head, nodeHead, ...seen].slice(0, Math.max(0, size.rows - 1));
  screen.draw([...body, status]);
}
