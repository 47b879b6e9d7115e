/** Files that only their owner may read. */
import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Written to a neighbour and renamed over: a reader sees the old file or the new one, never a part, and nobody else
 * can read it at any moment. `quick` does not wait for the disk: for what means nothing after a power loss.
 */
export function writePrivateFile(path: string, text: string, how: 'durable' | 'quick' = 'durable'): void {
  const neighbour = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    writeFileSync(neighbour, text, { mode: 0o600, flag: 'wx', flush: how === 'durable' });
    renameSync(neighbour, path);
  } catch (error) {
    rmSync(neighbour, { force: true });
    throw error;
  }
}
