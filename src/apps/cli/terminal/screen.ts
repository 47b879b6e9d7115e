/**
 * The whole terminal for a while: the alternate screen, no cursor, single keys. However it ends, by a key, a signal or an
 * error, the terminal is as it was before. Plain ANSI control sequences (ECMA-48) and the private modes of xterm that
 * every terminal in use knows: 1049 (alternate screen) and 25 (cursor).
 */

import { printable } from '../output.ts';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A line, and how it stands out. Colour is never the only sign. */
export interface Line {
  readonly text: string;
  readonly look?: 'head' | 'alarm' | 'warning' | 'quiet';
}

export type Key = 'up' | 'down' | 'left' | 'right' | 'page-up' | 'page-down' | 'quit' | (string & {});

export interface ScreenEvents {
  key(key: Key): void;
  /** The terminal has another size: draw again. */
  resized(): void;
  /** Ctrl-C, q, or a signal; the screen is closed already. */
  ended(): void;
}

export interface Screen {
  readonly size: Size;
  /** Lines beyond the screen are left out. */
  draw(lines: readonly Line[]): void;
  /** Once or often. */
  close(): void;
}

const ESC = '\u001b';
const ENTER = `${ESC}[?1049h${ESC}[?25l`;
const LEAVE = `${ESC}[0m${ESC}[?25h${ESC}[?1049l`;
const HOME = `${ESC}[H`;
const TO_LINE_END = `${ESC}[K`;
const TO_SCREEN_END = `${ESC}[J`;
const LOOKS: Readonly<Record<NonNullable<Line['look']>, string>> = {
  head: `${ESC}[1m`,
  alarm: `${ESC}[1;31m`,
  warning: `${ESC}[33m`,
  quiet: `${ESC}[2m`,
};
const PLAIN = `${ESC}[0m`;
const KEYS: Readonly<Record<string, Key>> = {
  [`${ESC}[A`]: 'up',
  [`${ESC}[B`]: 'down',
  [`${ESC}[C`]: 'right',
  [`${ESC}[D`]: 'left',
  [`${ESC}[5~`]: 'page-up',
  [`${ESC}[6~`]: 'page-down',
  '\u0003': 'quit',
  q: 'quit',
};
/** Keys pressed quickly arrive together. */
const KEY = new RegExp(`${ESC}\\[[0-9;]*[A-Za-z~]|[\\s\\S]`, 'gu');
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** What a terminal without a known size is taken for. */
const SIZE: Size = { columns: 80, rows: 24 };

export function openScreen(events: ScreenEvents): Screen {
  const { stdin, stdout } = process;
  const isPlain = (process.env['NO_COLOR'] ?? '') !== '';
  let isOpen = true;
  const onData = (data: Buffer): void => {
    for (const [sequence] of data.toString('utf8').matchAll(KEY)) {
      const key = KEYS[sequence] ?? sequence;
      if (!isOpen) return;
      if (key === 'quit') end();
      else events.key(key);
    }
  };
  const size = (): Size => ({ columns: stdout.columns || SIZE.columns, rows: stdout.rows || SIZE.rows });
  function close(): void {
    if (!isOpen) return;
    isOpen = false;
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.off('data', onData);
    stdin.pause();
    stdout.off('resize', events.resized);
    for (const signal of SIGNALS) process.off(signal, end);
    process.off('exit', close);
    stdout.write(LEAVE);
  }
  function end(): void {
    close();
    events.ended();
  }
  stdout.write(ENTER);
  if (stdin.isTTY) {
    stdin.setRawMode(true);
    stdin.on('data', onData);
    stdin.resume();
  }
  stdout.on('resize', events.resized);
  for (const signal of SIGNALS) process.on(signal, end);
  process.on('exit', close);
  return {
    get size() {
      return size();
    },
    draw(lines) {
      if (isOpen) stdout.write(drawing(lines, size(), isPlain));
    },
    close,
  };
}

/** Over what stands there, without clearing first: nothing flickers. */
function drawing(lines: readonly Line[], { columns, rows }: Size, isPlain: boolean): string {
  const shown = lines.slice(0, rows).map(({ text: given, look }) => {
    const text = printable(given);
    const cut = text.length > columns ? `${text.slice(0, Math.max(0, columns - 1))}…` : text;
    return look === undefined || isPlain ? cut : `${LOOKS[look]}${cut}${PLAIN}`;
  });
  return `${HOME}${shown.join(`${TO_LINE_END}\r\n`)}${TO_LINE_END}${TO_SCREEN_END}`;
}
