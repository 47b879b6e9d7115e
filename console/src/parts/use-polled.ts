/** Asks the gateway again and again while a screen is shown: the next time only after the answer to the one before. */
import { useEffect, useState } from 'preact/hooks';
import { type Answer, call } from '../api.ts';

export interface Polled<T> {
  /** Undefined before the first answer. The last good value stays beside a problem. */
  readonly value: T | undefined;
  readonly problem: string;
  readonly status: number;
  refresh(): void;
}

/** What to ask is a function that stays the same, or a path. */
type Ask<T> = (signal: AbortSignal) => Promise<Answer<T>>;

export function usePolled<T>(asked: string | Ask<T>, everyMs: number): Polled<T> {
  const [answer, setAnswer] = useState<Answer<T>>();
  const [value, setValue] = useState<T>();
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const { signal } = ending;
    const ask = async (): Promise<void> => {
      const next = await (typeof asked === 'string' ? call<T>(asked, { signal }) : asked(signal));
      if (signal.aborted) return;
      setAnswer(next);
      if (next.kind === 'value') setValue(next.value);
      timer = setTimeout(ask, everyMs);
    };
    void ask();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [asked, everyMs, turn]);
  const problem = answer?.kind === 'problem' ? answer.problem : undefined;
  return {
    value,
    problem: problem?.detail ?? '',
    status: problem?.status ?? 200,
    refresh: () => setTurn((before) => before + 1),
  };
}
