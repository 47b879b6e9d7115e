/**
 * The process of the load clients. Told what to play by one message; sends counters four times a second, then the
 * records; the parent ends it.
 */
import { startLoad, type LoadOptions, type LoadResult, type LoadTick } from './load.ts';

const TICK_MS = 250;

export type LoadMessage =
  | { readonly kind: 'started' }
  | { readonly kind: 'tick'; readonly tick: LoadTick }
  | { readonly kind: 'result'; readonly result: LoadResult };

process.once('disconnect', () => process.exit(0));
process.once('message', (options: LoadOptions) => {
  void run(options);
});

async function run(options: LoadOptions): Promise<void> {
  const load = startLoad(options);
  tell({ kind: 'started' });
  const ticking = setInterval(() => tell({ kind: 'tick', tick: load.tick() }), TICK_MS);
  const result = await load.finished;
  clearInterval(ticking);
  tell({ kind: 'result', result });
}

function tell(message: LoadMessage): void {
  process.send?.(message);
}
