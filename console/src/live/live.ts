/**
 * The gateway as it is now. One stream feeds it; screens are told once per frame of the browser, however many pictures
 * came, so that a slow machine shows fewer frames instead of falling behind.
 *
 *   connecting → live ⇄ retrying        refused: the token is not (or no longer) good
 */
import { API, problemOf } from '../api.ts';
import { readToken } from '../session.ts';
import type { Fleet, Picture } from '../wire.ts';
import { createEventReader } from './event-stream.ts';
import { createHistory, type History } from './history.ts';
import { createRateMeter, type Rates } from './rates.ts';

const EVERY_MS = 500;
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 10_000;
/** A connection that says nothing for this long, or for four pictures, is given up: what is shown must not look alive. */
const SILENT_MS_MIN = 5_000;
/** Read by whoever wants to know what an update costs; cleared at once, so that nothing piles up. */
const MEASURE = 'spillway:update';

export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'retrying'; readonly why: string }
  | { readonly kind: 'refused'; readonly why: string };

export interface Live {
  readonly connection: Connection;
  readonly fleet: Fleet | undefined;
  readonly picture: Picture | undefined;
  readonly history: History;
  readonly rates: Rates;
  /** Called once per frame in which something changed; returns how to stop. */
  subscribe(listener: () => void): () => void;
  stop(): void;
}

export function startLive(onRefused: () => void): Live {
  const listeners = new Set<() => void>();
  const ending = new AbortController();
  const history = createHistory();
  const meter = createRateMeter();
  let connection: Connection = { kind: 'connecting' };
  let fleet: Fleet | undefined;
  let picture: Picture | undefined;
  let isFrameDue = false;
  let parseMs = 0;
  let waitMs = RETRY_MS_MIN;

  function changed(): void {
    if (isFrameDue) return;
    isFrameDue = true;
    requestAnimationFrame(() => {
      isFrameDue = false;
      const startedAt = performance.now();
      for (const listener of listeners) listener();
      // Screens and the chart render in microtasks that are queued before this one.
      queueMicrotask(() => {
        const start = startedAt - parseMs;
        performance.measure(MEASURE, { start, end: performance.now() });
        performance.clearMeasures(MEASURE);
        parseMs = 0;
      });
    });
  }

  function connectionIs(next: Connection): void {
    connection = next;
    changed();
  }

  function take(name: string, data: string): void {
    const startedAt = performance.now();
    if (name === 'fleet') fleet = JSON.parse(data) as Fleet;
    else if (name === 'picture') {
      picture = JSON.parse(data) as Picture;
      history.add(picture);
      meter.add(picture);
    }
    parseMs += performance.now() - startedAt;
    changed();
  }

  async function read(response: Response, heard: () => void): Promise<void> {
    connectionIs({ kind: 'live' });
    const events = createEventReader();
    const decoder = new TextDecoder();
    const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      for (const { name, data } of events.push(decoder.decode(value, { stream: true }))) take(name, data);
    }
  }

  /** Resolves with why it ended, or undefined where it must not be tried again. */
  async function connect(): Promise<string | undefined> {
    const silence = watchSilence();
    try {
      const response = await fetch(`${API}/watch?everyMs=${everyMs()}`, {
        headers: { authorization: `Bearer ${readToken()}` },
        signal: AbortSignal.any([ending.signal, silence.signal]),
      });
      if (response.status === 401) return refuse((await problemOf(response)).detail);
      if (!response.ok) return (await problemOf(response)).detail;
      waitMs = RETRY_MS_MIN;
      await read(response, silence.heard);
      return 'the gateway ended the stream';
    } catch (thrown) {
      if (silence.signal.aborted) return 'no picture comes';
      return thrown instanceof Error ? thrown.message : String(thrown);
    } finally {
      silence.end();
    }
  }

  async function run(): Promise<void> {
    for (;;) {
      const why = await connect();
      if (why === undefined || ending.signal.aborted) return;
      connectionIs({ kind: 'retrying', why });
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      waitMs = Math.min(RETRY_MS_MAX, waitMs * 2);
    }
  }

  function refuse(why: string): undefined {
    connectionIs({ kind: 'refused', why });
    onRefused();
    return undefined;
  }

  void run();
  return {
    get connection() {
      return connection;
    },
    get fleet() {
      return fleet;
    },
    get picture() {
      return picture;
    },
    history,
    get rates() {
      return meter.rates;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    stop: () => ending.abort(),
  };
}

/** `?everyMs=` in the page's address asks for another rhythm, which the gateway bounds. */
function everyMs(): number {
  const asked = Number(new URLSearchParams(location.search).get('everyMs'));
  return Number.isInteger(asked) && asked > 0 ? asked : EVERY_MS;
}

interface Silence {
  /** Aborted when nothing was heard for too long. */
  readonly signal: AbortSignal;
  heard(): void;
  end(): void;
}

function watchSilence(): Silence {
  const tooLong = new AbortController();
  const msMax = Math.max(SILENT_MS_MIN, 4 * everyMs());
  let timer = setTimeout(() => tooLong.abort(), msMax);
  return {
    signal: tooLong.signal,
    heard() {
      clearTimeout(timer);
      timer = setTimeout(() => tooLong.abort(), msMax);
    },
    end: () => clearTimeout(timer),
  };
}
