/** The last decisions of the scheduler, the newest first. */
import type { JSX } from 'preact';
import { type Answer, call } from '../api.ts';
import { usePolled } from '../parts/use-polled.ts';
import type { DecisionsPage } from '../wire.ts';
import { DecisionTable } from './decision-table.tsx';

const EVERY_MS = 2_000;
const SHOWN = 100;
/** After it there is none, and the answer tells the number of the last one. */
const BEYOND_ALL = 999_999_999;

export function LastDecisions(): JSX.Element {
  const page = usePolled<DecisionsPage>(askLast, EVERY_MS);
  if (page.value === undefined) return <p class="quiet">{page.problem || 'Asking the gateway.'}</p>;
  const decisions = page.value.decisions.toReversed();
  return <DecisionTable decisions={decisions} caption={`The last ${decisions.length}`} hasTask />;
}

async function askLast(signal: AbortSignal): Promise<Answer<DecisionsPage>> {
  const end = await call<DecisionsPage>(`/decisions?since=${BEYOND_ALL}&limit=1`, { signal });
  if (end.kind === 'problem') return end;
  return call<DecisionsPage>(`/decisions?since=${Math.max(0, end.value.next - SHOWN)}&limit=${SHOWN}`, {
    signal,
  });
}
