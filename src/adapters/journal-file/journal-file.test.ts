import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BUFFER_BYTES_MAX, createJournalFile } from './journal-file.ts';
import { journalFiles, readJournal } from './read-journal.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-journal-file-'));
});

afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true, force: true });
});

const bytes = (text: string): Uint8Array => Buffer.from(text);

async function kinds(path: string): Promise<string[]> {
  const found: string[] = [];
  for await (const line of readJournal(journalFiles(path)))
    found.push(line.kind === 'line' ? line.text : line.kind);
  return found;
}

describe('createJournalFile', () => {
  test('writes lines in order, sealed, for its owner alone', async () => {
    const store = createJournalFile({ folder, run: 'r', bytesMax: 1_000_000 });
    expect(store.nextSegment()).toBe(true);
    expect(store.append(bytes('one\ntwo\n'), 2)).toBe(true);
    store.append(bytes('drei ü\n'), 1);
    await store.close();
    expect(await kinds(folder)).toEqual(['one', 'two', 'sealed', 'drei ü', 'sealed']);
    const [file] = journalFiles(folder) as [string];
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(store.counters()).toMatchObject({ segments: 1, bufferedBytes: 0, linesLost: 0 });
  });

  test('tells lines that were changed, and an end that was cut', async () => {
    const store = createJournalFile({ folder, run: 'r', bytesMax: 1_000_000 });
    store.nextSegment();
    store.append(bytes('one\n'), 1);
    await store.close();
    const [file] = journalFiles(folder) as [string];
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace('one', 'onf'));
    expect(await kinds(folder)).toEqual(['onf', 'damaged']);
    writeFileSync(file, `${text}two`);
    expect(await kinds(folder)).toEqual(['one', 'sealed', 'two', 'unsealed']);
  });

  test('removes the oldest segments beyond the bound, those of earlier runs first', async () => {
    for (const run of ['1', '2']) {
      const store = createJournalFile({ folder, run, bytesMax: 250 });
      for (let segment = 0; segment < 4; segment++) {
        store.nextSegment();
        store.append(bytes(`${'x'.repeat(99)}\n`), 1);
      }
      await store.close();
    }
    const names = readdirSync(folder).sort();
    expect(names).toEqual(['journal-2-000002.txt', 'journal-2-000003.txt', 'journal-2-000004.txt']);
    expect(journalFiles(folder)).toHaveLength(3);
  });

  test('takes nothing beyond its buffer, and nothing of what it refused', async () => {
    const store = createJournalFile({ folder, run: 'r', bytesMax: 1_000_000_000 });
    store.nextSegment();
    const half = bytes(`${'x'.repeat(BUFFER_BYTES_MAX / 2 + 1)}\n`);
    expect(store.append(half, 1)).toBe(true);
    expect(store.append(half, 1)).toBe(false);
    expect(store.nextSegment()).toBe(false);
    await store.close();
    expect(statSync(journalFiles(folder)[0] as string).size).toBeLessThan(BUFFER_BYTES_MAX * 0.6);
  });

  test('counts what a failed disk loses, and goes on in the next segment when it is back', async () => {
    const errors: string[] = [];
    const store = createJournalFile({
      folder: join(folder, 'sub'),
      run: 'r',
      bytesMax: 1_000_000,
      onError: (reason) => errors.push(reason),
    });
    rmSync(join(folder, 'sub'), { recursive: true });
    store.nextSegment();
    store.append(bytes('lost\nlost too\n'), 2);
    await expect.poll(() => store.counters().linesLost).toBe(2);
    expect(errors[0]).toContain('ENOENT');
    expect(store.append(bytes('refused\n'), 1)).toBe(false);
    // The folder is back.
    createJournalFile({ folder: join(folder, 'sub'), run: 'other', bytesMax: 1 });
    expect(store.nextSegment()).toBe(true);
    expect(store.append(bytes('kept\n'), 1)).toBe(true);
    await store.close();
    expect(await kinds(join(folder, 'sub'))).toEqual(['kept', 'sealed']);
  });
});
