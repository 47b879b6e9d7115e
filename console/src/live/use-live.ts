/** Lets a component render again whenever the live picture changed. */
import { createContext } from 'preact';
import { useContext, useEffect, useReducer } from 'preact/hooks';
import type { Live } from './live.ts';

export const LiveContext: ReturnType<typeof createContext<Live | undefined>> = createContext<
  Live | undefined
>(undefined);

/** The live picture, for who follows it by itself. */
export function useLiveSource(): Live {
  const live = useContext(LiveContext);
  if (live === undefined) throw new Error('A screen is shown outside of the console');
  return live;
}

export function useLive(): Live {
  const live = useLiveSource();
  const [, renderAgain] = useReducer((count: number) => count + 1, 0);
  useEffect(() => live.subscribe(() => renderAgain(undefined)), [live]);
  return live;
}
