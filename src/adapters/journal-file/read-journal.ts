/**
 * Reads a journal back: one file, or the segments of the newest run in a folder. Lines come with their number; a batch of
 * lines whose checksum is wrong, and an end that was cut, are told where they are found.
 */
import { createReadStream, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { crc32 } from 'node:zlib';
import { runOf, segmentsIn } from './segments.ts';

/** Longer is not one of ours: a head with a large configuration is some megabytes. */
const LINE_CHARS_MAX = 256 * 1024 * 1024;

type JournalLine =
  | { readonly kind: 'line'; readonly text: string; readonly file: string; readonly number: number }
  /** What was read since the last seal is what was written. */
  | { readonly kind: 'sealed'; readonly file: string; readonly number: number }
  /** What was read since the last seal is not what was written. */
  | { readonly kind: 'damaged'; readonly file: string; readonly number: number }
  /** The last lines were never sealed: the writer was cut off. */
  | { readonly kind: 'unsealed'; readonly file: string; readonly number: number };

/** Paths of the segments to read, in order. Throws what the file system says. */
export function journalFiles(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  const names = segmentsIn(readdirSync(path));
  const newest = names.at(-1);
  if (newest === undefined) return [];
  const run = runOf(newest);
  return names.filter((name) => runOf(name) === run).map((name) => join(path, name));
}

export async function* readJournal(files: readonly string[]): AsyncGenerator<JournalLine> {
  for (const file of files) yield* readSegment(file);
}

async function* readSegment(path: string): AsyncGenerator<JournalLine> {
  const file = basename(path);
  const lines = createInterface({
    input: createReadStream(path, 'utf8'),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  let number = 0;
  let sum = 0;
  let unsealed = 0;
  for await (const text of lines) {
    number += 1;
    if (text.length > LINE_CHARS_MAX) yield { kind: 'damaged', file, number };
    const seal = /^z(\d+)$/.exec(text);
    if (seal === null) {
      sum = crc32(`${text}\n`, sum);
      unsealed += 1;
      yield { kind: 'line', text, file, number };
      continue;
    }
    yield { kind: Number(seal[1]) === sum ? 'sealed' : 'damaged', file, number };
    sum = 0;
    unsealed = 0;
  }
  if (unsealed > 0) yield { kind: 'unsealed', file, number };
}
