/**
 * The live view: a few lines redrawn in place on a terminal, one line every few seconds elsewhere. Plain ANSI; nothing
 * is kept but the height of the last frame.
 */
import type { Bytes, DurationMs } from '../../base/units.ts';
import type { NodeReading, QueueReading } from './gateway-watch.ts';
import type { LoadTick } from './load.ts';

export interface ViewFrame {
  readonly title: string;
  readonly phase: string;
  readonly elapsedMs: DurationMs;
  readonly totalMs: DurationMs;
  readonly tick: LoadTick;
  /** Counters of the frame before, for rates, and the time between. */
  readonly before: LoadTick;
  readonly betweenMs: DurationMs;
  readonly queue: QueueReading | undefined;
  readonly nodes: readonly NodeReading[];
  readonly rssBytes: Bytes;
}

export interface Screen {
  readonly isTerminal: boolean;
  readonly columns: number;
  write(text: string): void;
}

export interface View {
  show(frame: ViewFrame): void;
  /** A line that stays. */
  say(line: string): void;
}

const BAR_CELLS = 14;
/** Drain time that fills a bar, and depth that fills a class's bar. */
const DRAIN_MS_FULL = 1_000;
const DEPTH_FULL = 2_000;
const PLAIN_EVERY_MS = 5_000;
const EIGHTHS = ' ▏▎▍▌▋▊▉';

export function createView(screen: Screen): View {
  let height = 0;
  let lastPlainMs = Number.NEGATIVE_INFINITY;
  const erase = (): string => (height === 0 ? '' : `\u001b[${height}A\u001b[J`);
  return {
    show(frame) {
      if (!screen.isTerminal) {
        if (frame.elapsedMs < lastPlainMs) lastPlainMs = Number.NEGATIVE_INFINITY;
        if (frame.elapsedMs - lastPlainMs < PLAIN_EVERY_MS) return;
        lastPlainMs = frame.elapsedMs;
        screen.write(`${plainLine(frame)}\n`);
        return;
      }
      const lines = frameLines(frame, screen.columns).map((line) =>
        line.slice(0, Math.max(20, screen.columns - 1)),
      );
      screen.write(`${erase()}${lines.join('\n')}\n`);
      height = lines.length;
    },
    say(line) {
      screen.write(`${screen.isTerminal ? erase() : ''}${line}\n`);
      height = 0;
    },
  };
}

export function bar(ratio: number, cells: number = BAR_CELLS): string {
  const eighths = Math.round(Math.min(1, Math.max(0, ratio)) * cells * 8);
  const full = '█'.repeat(eighths >> 3);
  const rest = eighths & 7;
  return (full + (rest === 0 ? '' : (EIGHTHS[rest] as string))).padEnd(cells, '·');
}

interface Rates {
  readonly users: number;
  readonly attempts: number;
  readonly served: number;
  readonly refused: number;
}

function ratesOf(frame: ViewFrame): Rates {
  const perS = 1_000 / Math.max(1, frame.betweenMs);
  const { tick, before } = frame;
  return {
    users: Math.round((tick.users - before.users) * perS),
    attempts: Math.round((tick.attempts - before.attempts) * perS),
    served: Math.round((tick.ended.served - before.ended.served) * perS),
    refused: Math.round((tick.refusedAttempts - before.refusedAttempts) * perS),
  };
}

function plainLine(frame: ViewFrame): string {
  const rates = ratesOf(frame);
  return [
    `${frame.title} (emulated)`,
    `${seconds(frame.elapsedMs)}/${seconds(frame.totalMs)} ${frame.phase}`,
    `users ${rates.users}/s`,
    `attempts ${rates.attempts}/s`,
    `served ${rates.served}/s`,
    `refused ${rates.refused}/s`,
    `queued ${frame.queue?.depth ?? '?'}`,
    `memory ${megabytes(frame.rssBytes)}`,
  ].join(' | ');
}

function frameLines(frame: ViewFrame, columns: number): string[] {
  const rates = ratesOf(frame);
  const { tick } = frame;
  const per = (value: number): string => `${String(value).padStart(5)}/s`;
  return [
    `Spillway demo: ${frame.title}   EMULATED accelerators   ${frame.phase}`,
    `time      ${bar(frame.elapsedMs / frame.totalMs, 40)} ${seconds(frame.elapsedMs)} of ${seconds(frame.totalMs)}`,
    `rates     new users ${per(rates.users)}   attempts ${per(rates.attempts)}   served ${per(rates.served)}   refused ${per(rates.refused)}`,
    `so far    users ${tick.users}   served ${tick.ended.served}   refused ${tick.ended.refused}   failed ${tick.ended.failed}   gave up ${tick.ended.cancelled}   embeddings ${tick.embeddingServed}`,
    `memory    ${megabytes(frame.rssBytes)} gateway   outstanding ${tick.outstanding}`,
    ...queueLines(frame.queue),
    'drain time per node (emulated hardware as it states itself):',
    ...nodeLines(frame.nodes, columns),
  ];
}

function queueLines(queue: QueueReading | undefined): string[] {
  if (queue === undefined) return ['queue     (the gateway did not answer in time)'];
  return Object.entries(queue.byClass).map(
    ([name, group]) =>
      `queue     ${name.padEnd(9)} ${bar(group.depth / DEPTH_FULL)} ${String(group.depth).padStart(6)} waiting, ${seconds(group.workMs)} of work`,
  );
}

function nodeLines(nodes: readonly NodeReading[], columns: number): string[] {
  const cells = nodes.map((node) => {
    const mark = node.state === 'active' ? ' ' : '!';
    const name = `${node.id}${mark}`.padEnd(14);
    return `${name}${bar(node.drainMs / DRAIN_MS_FULL, 10)} ${String(Math.round(node.drainMs)).padStart(6)} ms  `;
  });
  const perLine = Math.max(1, Math.floor((columns - 1) / 36));
  const lines: string[] = [];
  for (let at = 0; at < cells.length; at += perLine) lines.push(cells.slice(at, at + perLine).join(''));
  return lines;
}

function seconds(ms: DurationMs): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function megabytes(bytes: Bytes): string {
  return `${(bytes / 1_000_000).toFixed(0)} MB`;
}
