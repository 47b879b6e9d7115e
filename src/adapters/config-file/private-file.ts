/** Files that only their owner may read. */
import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Written to a neighbour and renamed over: a reader sees the old file or the new one, never a part, and nobody else
 * can read it at any moment. `quick` does not wait for the disk: for what means nothing after a power loss.
 */
export function writePrivateFile(path: string, text: string, how: 'durable' | 'quick' = 'durable'): void {
  const neighbour = neighbourOf(path);
  try {
    writeFileSync(neighbour, text, { mode: 0o600, flag: 'wx', flush: how === 'durable' });
    renameSync(neighbour, path);
  } catch (error) {
    rmSync(neighbour, { force: true });
    throw error;
  }
}

/** The same without holding up the thread; resolves when a loss of power would leave the new file. */
export async function writePrivateFileSoon(path: string, text: string): Promise<void> {
  const neighbour = neighbourOf(path);
  try {
    await writeFile(neighbour, text, { mode: 0o600, flag: 'wx', flush: true });
    await rename(neighbour, path);
  } catch (error) {
    await rm(neighbour, { force: true });
    throw error;
  }
  // The new name is in the folder: without this the old file may come back.
  const folder = await open(dirname(path));
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function neighbourOf(path: string): string {
  return `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
}
