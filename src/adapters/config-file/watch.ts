/**
 * Tells when a file of the configuration changed: written in place, renamed over by an editor, or swapped by Kubernetes,
 * which replaces the `..data` link beside the file. Bursts become one call.
 *
 * Events of the file system make it quick; a look at the files every two seconds makes it certain, also for links that
 * are swapped and for network file systems that send no events.
 */
import { realpathSync, statSync } from 'node:fs';
import { watch } from 'chokidar';

export interface FileWatch {
  /** Watches these from now on, also those that do not exist yet. */
  set(files: readonly string[]): void;
  close(): Promise<void>;
}

/** Editors write, rename and touch within some milliseconds; a half-written file must not be read. */
const SETTLE_MS = 150;
const LOOK_MS = 2_000;
/** Files that are looked at; the configuration itself comes first, certificates of thousands of nodes last. */
const LOOKED_AT_MAX = 100;

export function watchFiles(files: readonly string[], onChange: () => void): FileWatch {
  const watcher = watch([], { ignoreInitial: true, depth: 0 });
  let watched: readonly string[] = [];
  let seen = '';
  let timer: NodeJS.Timeout | undefined;
  const settle = (): void => {
    clearTimeout(timer);
    timer = setTimeout(onChange, SETTLE_MS);
  };
  watcher.on('all', settle);
  // What changed between the first reading and this moment was seen by nobody.
  watcher.on('ready', settle);
  // A folder that vanished, or too many watches: looking goes on.
  watcher.on('error', () => undefined);
  const looking = setInterval(() => {
    const now = fingerprint(watched);
    if (now !== seen) settle();
    seen = now;
  }, LOOK_MS);
  looking.unref();
  const set = (next: readonly string[]): void => {
    const before = new Set(watched);
    const wanted = new Set(next);
    watcher.unwatch([...before].filter((path) => !wanted.has(path)));
    watcher.add([...wanted].filter((path) => !before.has(path)));
    watched = next;
    seen = fingerprint(next);
  };
  set(files);
  return {
    set,
    async close() {
      clearTimeout(timer);
      clearInterval(looking);
      await watcher.close();
    },
  };
}

/** Where each file really is, and what would change with its content. */
function fingerprint(files: readonly string[]): string {
  return files.slice(0, LOOKED_AT_MAX).map(fingerprintOne).join('\n');
}

function fingerprintOne(file: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(file);
    return `${realpathSync(file)} ${ino} ${size} ${mtimeMs}`;
  } catch {
    return 'absent';
  }
}
