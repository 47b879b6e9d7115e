/** The screen of `spillway top`: what is wrong first, then classes, then nodes. Pure; fits any width. */
import { duration, table, wrapped } from '../output.ts';
import { findingHead } from '../signals.ts';
import type { Line, Size } from './screen.ts';
import type { TopClass, TopNode, TopView } from './top-view.ts';

/** Findings on the screen; `spillway signals` has all of them. */
const FINDINGS_MAX = 5;

export interface TopParts {
  readonly head: readonly Line[];
  /** Scrolled where it does not fit. */
  readonly nodes: readonly Line[];
}

export function topParts(view: TopView, { columns }: Pick<Size, 'columns'>): TopParts {
  const fit = (head: readonly string[], rows: readonly string[][]): Line[] =>
    table(head, rows, { width: columns, shrinks: [0] })
      .split('\n')
      .map((text, i): Line => (i === 0 ? { text, look: 'head' } : { text }));
  const head: Line[] = [
    { text: summary(view), look: 'head' },
    ...ladderLines(view, columns),
    ...signalLines(view),
    { text: '' },
    ...fit(CLASS_HEAD, view.classes.map(classRow)),
    { text: '' },
    { text: fleetLine(view) },
  ];
  return { head, nodes: fit(NODE_HEAD, view.nodes.rows.map(nodeRow)) };
}

function summary({ waiting, running, oldestWaitMs, ready }: TopView): string {
  const oldest = waiting === 0 ? '' : `, oldest ${duration(oldestWaitMs)}`;
  return `${waiting} waiting, ${running} running${oldest}${ready ? '' : ', NOT READY'}`;
}

function ladderLines({ ladder, retryBudget }: TopView, columns: number): Line[] {
  const budget = `retry budget ${Math.round(retryBudget * 100)} %`;
  if (ladder.stage === 0) return [{ text: `ladder 0, ${budget}` }];
  const model = ladder.model === null ? '' : ` (${ladder.model})`;
  const text = `ladder ${ladder.stage}${model}, ${budget}: ${ladder.unblock}`;
  return wrapped(text, columns).map((line) => ({ text: line, look: 'warning' }));
}

function signalLines({ signals, at }: TopView): Line[] {
  if (signals === null) return [{ text: 'signals: this gateway tells none', look: 'quiet' }];
  if (signals.length === 0) return [{ text: 'signals: nothing found' }];
  const lines = signals
    .slice(0, FINDINGS_MAX)
    .flatMap((one): Line[] => [
      { text: findingHead(one, at), look: one.severity === 'page' ? 'alarm' : 'warning' },
      { text: `      ${one.says}` },
    ]);
  const more = signals.length - FINDINGS_MAX;
  return more > 0 ? [...lines, { text: `and ${more} more: spillway signals`, look: 'quiet' }] : lines;
}

const CLASS_HEAD = ['CLASS', 'WAIT', 'OLDEST', 'SERVED', 'SERVED/S', 'REFUSED/S', 'FAILED/S', 'LESSER/S'];

function classRow({ name, waiting, oldestWaitMs, rates }: TopClass): string[] {
  const oldest = waiting === 0 ? '-' : duration(oldestWaitMs);
  if (rates === null) return [name, String(waiting), oldest, '?', '?', '?', '?', '?'];
  const { servedRatio, servedPerS, refusedPerS, failedPerS, degradedPerS } = rates;
  const ratio = servedRatio === null ? '-' : `${(servedRatio * 100).toFixed(1)} %`;
  return [
    name,
    String(waiting),
    oldest,
    ratio,
    ...[servedPerS, refusedPerS, failedPerS, degradedPerS].map(perS),
  ];
}

function perS(value: number): string {
  return value === 0 ? '-' : value < 10 ? value.toFixed(1) : String(Math.round(value));
}

function fleetLine({ nodes }: TopView): string {
  const states = Object.entries(nodes.byState).map(([state, count]) => `${count} ${state}`);
  return `${nodes.total} nodes${states.length === 0 ? '' : `: ${states.join(', ')}`}`;
}

const NODE_HEAD = ['NODE', 'STATE', 'BUSY', 'DRAIN', 'RATE', 'HEALTH'];

function nodeRow({ id, state, inflight, slots, drainMs, rate, health }: TopNode): string[] {
  const rateText = rate === null ? '?' : rate.toFixed(2);
  return [id, state, `${inflight}/${slots ?? '?'}`, duration(drainMs), rateText, health.toFixed(2)];
}
