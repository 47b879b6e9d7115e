/**
 * A view of a running gateway in its three forms: once for people, once as a JSON document, or on the whole terminal,
 * looked at again and again. A gateway that goes away while it is watched is waited for.
 */
import { CliError, DONE, USAGE } from '../exit.ts';
import type { AdminOptions } from '../admin-client.ts';
import { duration, say, sayJson, terminalWidth } from '../output.ts';
import { type Line, openScreen, type Screen } from './screen.ts';

export interface WatchOptions extends AdminOptions {
  /** Seconds between two looks; true: the default. */
  readonly watch?: number | true;
}

export interface Shown {
  readonly document: unknown;
  text(width: number): string;
}

export const WATCH_SECONDS = 2;

export async function showing(options: WatchOptions, look: () => Promise<Shown>): Promise<number> {
  const { json = false, watch } = options;
  if (json && watch !== undefined)
    throw new CliError(
      'Expected --watch or --json, not both: --json writes one document; run the command again for another',
      USAGE,
    );
  const first = await look();
  if (json) sayJson(first.document);
  else if (watch === undefined || !process.stdout.isTTY) say(first.text(terminalWidth()));
  else await keepShowing({ first, look, everyMs: (watch === true ? WATCH_SECONDS : watch) * 1_000 });
  return DONE;
}

interface Watched {
  readonly first: Shown;
  readonly look: () => Promise<Shown>;
  readonly everyMs: number;
}

async function keepShowing({ first, look, everyMs }: Watched): Promise<void> {
  const view = { shown: first, problem: '', at: Date.now(), offset: 0 };
  const end = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const redraw = (): void => drawText(screen, view);
  const screen = openScreen({
    key(key) {
      view.offset = scrolled(view.offset, key, screen.size.rows);
      redraw();
    },
    resized: redraw,
    ended() {
      isOver = true;
      clearTimeout(timer);
      end.resolve();
    },
  });
  async function again(): Promise<void> {
    try {
      view.shown = await look();
      view.at = Date.now();
      view.problem = '';
    } catch (error) {
      view.problem = error instanceof Error ? error.message : String(error);
    }
    if (isOver) return;
    redraw();
    timer = setTimeout(() => void again(), everyMs);
  }
  redraw();
  timer = setTimeout(() => void again(), everyMs);
  await end.promise;
}

/** Where the first shown line is after a key. */
export function scrolled(offset: number, key: string, rows: number): number {
  const page = Math.max(1, rows - 2);
  const step = { up: -1, down: 1, 'page-up': -page, 'page-down': page }[key] ?? 0;
  return Math.max(0, offset + step);
}

function drawText(
  screen: Screen,
  view: { readonly shown: Shown; readonly problem: string; readonly at: number; offset: number },
): void {
  const { columns, rows } = screen.size;
  const [head = '', ...body] = view.shown.text(columns).split('\n');
  const room = Math.max(1, rows - 2);
  view.offset = Math.min(view.offset, Math.max(0, body.length - room));
  const seen = body.slice(view.offset, view.offset + room).map((text): Line => ({ text }));
  screen.draw([{ text: head, look: 'head' }, ...seen, statusLine(view, 'q quit  ↑↓ scroll')]);
}

/** The last line: what can be done, or since when the gateway is not heard. */
export function statusLine(
  { problem, at }: { readonly problem: string; readonly at: number },
  keys: string,
): Line {
  if (problem === '') return { text: keys, look: 'quiet' };
  return { text: `no answer for ${duration(Date.now() - at)}: ${problem}`, look: 'alarm' };
}
