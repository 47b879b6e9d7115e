/**
 * Where the overlay and its history are kept: one file of mode 0600 in the state folder, written to a neighbour, flushed,
 * renamed over, and the folder flushed, before a commit resolves. Without a folder it lasts as long as the process.
 *
 * The state folder has one gateway, so there is one writer; the caller commits one state after another.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ConfigDifference, JsonObject } from '../../core/config/index.ts';
import { writePrivateFileSoon } from './private-file.ts';

export interface OverlayVersion {
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly who: string;
  readonly why: string;
  readonly changed: readonly ConfigDifference[];
  /** The whole overlay of this version: what a rollback restores. */
  readonly overlay: JsonObject;
}

export interface OverlayState {
  /** 0: nothing was ever changed. */
  readonly version: number;
  readonly overlay: JsonObject;
  /** By path: the version in which each value of the overlay was set. */
  readonly setIn: Readonly<Record<string, number>>;
  /** Oldest first, at most `VERSIONS_MAX`. */
  readonly history: readonly OverlayVersion[];
}

export interface OverlayStore {
  readonly durable: boolean;
  /** What was committed last. */
  readonly state: OverlayState;
  /** Resolves when it is durable; rejects, and keeps the state, when it cannot be written. */
  commit(next: OverlayState): Promise<void>;
}

export type OpenedOverlay =
  | { readonly kind: 'store'; readonly store: OverlayStore }
  | { readonly kind: 'refused'; readonly file: string; readonly rule: string };

/** Versions that can be restored. */
export const VERSIONS_MAX = 100;
export const OVERLAY_FILE = 'config-overlay.json';
const FORMAT = 1;
/** A hundred of the largest overlays, with what they changed. */
const FILE_BYTES_MAX: number = 32 * 1024 * 1024;
const NOTHING: OverlayState = { version: 0, overlay: {}, setIn: {}, history: [] };

/** An empty folder keeps it in memory. A file that cannot be understood is refused, never guessed at or overwritten. */
export function openOverlayStore(folder: string): OpenedOverlay {
  if (folder === '') return { kind: 'store', store: createStore('', NOTHING) };
  const file = join(folder, OVERLAY_FILE);
  const read = readState(file);
  if (typeof read === 'string') return { kind: 'refused', file, rule: read };
  return { kind: 'store', store: createStore(file, read) };
}

function createStore(file: string, initial: OverlayState): OverlayStore {
  let state = initial;
  return {
    durable: file !== '',
    get state() {
      return state;
    },
    async commit(next) {
      const kept = { ...next, history: next.history.slice(-VERSIONS_MAX) };
      if (file !== '') await writePrivateFileSoon(file, `${JSON.stringify({ format: FORMAT, ...kept })}\n`);
      state = kept;
    },
  };
}

/** What the file says, or the rule that it breaks. */
function readState(file: string): OverlayState | string {
  let parsed: unknown;
  try {
    if (statSync(file).size > FILE_BYTES_MAX) return `Expected at most ${FILE_BYTES_MAX} bytes`;
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOENT') return NOTHING;
    return code === '' ? 'Expected JSON' : `Expected a readable file (${code})`;
  }
  if (!isState(parsed))
    return `Expected an overlay in format ${FORMAT}, as a gateway of this version writes it`;
  const { version, overlay, setIn, history } = parsed;
  return { version, overlay, setIn, history };
}

function isState(value: unknown): value is OverlayState {
  const { format, version, overlay, setIn, history } = Object(value) as Record<string, unknown>;
  const isMapping = (one: unknown): boolean => one !== null && typeof one === 'object' && !Array.isArray(one);
  return (
    format === FORMAT &&
    Number.isSafeInteger(version) &&
    isMapping(overlay) &&
    isMapping(setIn) &&
    Array.isArray(history) &&
    history.every((one) => Number.isSafeInteger(Object(one).version) && isMapping(Object(one).overlay))
  );
}
