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

export function usePolled<T>(path: string, everyMs: number): Polled<T> {
  const [answer, setAnswer] = useState<Answer<T>>();
  const [value, setValue] = useState<T>();
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const next = await call<T>(path, { signal: ending.signal });
      if (ending.signal.aborted) return;
      setAnswer(next);
      if (next.kind === 'value') setValue(next.value);
      timer = setTimeout(ask, everyMs);
    };
    void ask();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, turn]);
  const problem = answer?.kind === 'problem' ? answer.problem : undefined;
  return {
    value,
    problem: problem?.detail ?? '',
    status: problem?.status ?? 200,
    refresh: () => setTurn((before) => before + 1),
  };
}
