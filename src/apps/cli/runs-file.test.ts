import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readRuns } from './runs-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'spillway-runs-'));
afterAll(() => rmSync(folder, { recursive: true }));

function read(text: string): ReturnType<typeof readRuns> {
  const file = join(folder, 'runs');
  writeFileSync(file, text);
  return readRuns(file);
}

describe('readRuns', () => {
  test('reads the table that MLflow writes, quotes and lines inside them too', () => {
    const text =
      'run_id,status,start_time,end_time,params.tenant,tags.deadline,tags.note\r\n' +
      'a1,FINISHED,2026-11-03 14:00:00.500000+00:00,2026-11-03 15:00:00+00:00,team-a,2026-11-03T14:30:00Z,"two\nlines, ""quoted"""\r\n' +
      'a2,RUNNING,1762178400000,,,,\n';
    expect(read(text)).toEqual([
      {
        id: 'a1',
        submittedMs: Date.UTC(2026, 10, 3, 14, 0, 0, 500),
        finishedMs: Date.UTC(2026, 10, 3, 15),
        deadlineMs: Date.UTC(2026, 10, 3, 14, 30),
        tenant: 'team-a',
      },
      { id: 'a2', submittedMs: 1_762_178_400_000 },
    ]);
  });

  test('reads an array of objects', () => {
    expect(read('[{"run":"r","submitted":5,"deadline":null,"class":"low","model":"m"}]')).toEqual([
      { id: 'r', submittedMs: 5, className: 'low', model: 'm' },
    ]);
  });

  test.each([
    ['run,submitted\nr,soon\n', /runs:2: expected an instant .* received soon/],
    ['run,submitted\nr,1\n"a\nb",\n', /runs:3: expected when the run was submitted/],
    ['run,submitted\n"r,1\n', /runs:2: a quote is not closed/],
    ['', /expected a table with a head/],
    ['[1]', /expected an array of objects/],
    ['[{"submitted":"x"}]', /runs:run 1: expected an instant/],
  ])('refuses %j, and says where', (text, why) => {
    expect(() => read(text)).toThrow(why);
  });

  test('says that there is no such file', () => {
    expect(() => readRuns(join(folder, 'none'))).toThrow(/Could not read the runs of .*none/);
  });
});
