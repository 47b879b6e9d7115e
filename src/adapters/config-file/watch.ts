/**
 * Tells when a file of the configuration changed: written in place, renamed over by an editor, or swapped by Kubernetes,
 * which replaces the `..data` link beside the file. Bursts become one call.
 */
import { dirname, join } from 'node:path';
import { watch } from 'chokidar';

export interface FileWatch {
  /** Watches these from now on, also those that do not exist yet. */
  set(files: readonly string[]): void;
  close(): Promise<void>;
}

/** Editors write, rename and touch within some milliseconds; a half-written file must not be read. */
const SETTLE_MS = 150;

export function watchFiles(files: readonly string[], onChange: () => void): FileWatch {
  const watcher = watch([], { ignoreInitial: true, followSymlinks: true, depth: 0 });
  let watched = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  watcher.on('all', () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, SETTLE_MS);
  });
  // A folder that vanished, or too many watches: what was loaded stays in force, and SIGHUP still reloads.
  watcher.on('error', () => undefined);
  const set = (next: readonly string[]): void => {
    const wanted = new Set(next.flatMap((file) => [file, join(dirname(file), '..data')]));
    watcher.unwatch([...watched].filter((path) => !wanted.has(path)));
    watcher.add([...wanted].filter((path) => !watched.has(path)));
    watched = wanted;
  };
  set(files);
  return {
    set,
    async close() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}
