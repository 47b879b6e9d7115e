import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CompareReport } from '../../simulator/compare/report.ts';
import type { Regret } from '../../simulator/oracle/regret.ts';
import { run } from './program.ts';
import { createProgress } from './progress.ts';

const SMALL = `
about: Two nodes and few users.
span: 30s
drain: 10s
fleet: {fast: 1, slow: {speed: 0.5}}
streams: {users: {load: 0.7, classes: {critical: 0.5, low: 0.5}}}
policies: [spillway, sed]
`;

interface Watched {
  readonly samples: number;
  readonly raised: readonly unknown[];
  readonly blind: Readonly<Record<string, string>>;
}

let folder = '';
let out = '';
let problems = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-simulate-'));
  out = '';
  problems = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((problems += String(text)), true));
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

function simulate(text: string, ...options: readonly string[]): Promise<number> {
  const file = join(folder, 'small.yaml');
  writeFileSync(file, text);
  return run(['simulate', file, ...options]);
}

describe('spillway simulate', () => {
  test('prints a table with a column for each policy', async () => {
    expect(await simulate(SMALL)).toBe(0);
    expect(out).toMatch(/^policy +spillway +sed$/m);
    expect(out).toMatch(/^in time: critical +\S+ % +\S+ %$/m);
    expect(problems).toBe('');
  });

  test('writes one document with --json, the same for the same seed and another for another', async () => {
    const documents: string[] = [];
    for (const seed of ['3', '3', '4']) {
      out = '';
      expect(await simulate(SMALL, '--json', '--policy', 'spillway', '--seed', seed)).toBe(0);
      documents.push(out.replaceAll(/"wallSeconds": .*/g, ''));
    }
    expect(documents[0]).toBe(documents[1]);
    const hashes = documents.map((text) => /"decisionHash": "(\w+)"/.exec(text)?.[1]);
    expect(hashes[2]).not.toBe(hashes[0]);
    const { policies } = JSON.parse(out) as { readonly policies: Readonly<Record<string, object>> };
    expect(Object.keys(policies)).toEqual(['spillway']);
    expect(policies['spillway']).toMatchObject({
      requests: expect.any(Number),
      goodputRatio: expect.any(Number),
    });
  });

  test('gives figures with intervals for several seeds', async () => {
    expect(await simulate(SMALL, '--json', '--seeds', '3', '--policy', 'sed')).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      seeds: 3,
      policies: {
        sed: { byClass: { critical: { attained: { mean: expect.any(Number), low: expect.any(Number) } } } },
      },
    });
  });

  test('ends with 1 when a bar is missed, and says by how much', async () => {
    expect(await simulate(`${SMALL}bars: [{metric: goodputRatio, atLeast: 2}]\n`)).toBe(1);
    expect(out).toMatch(/^MISSED +spillway +goodputRatio +0\.\d+ +at least 2$/m);
  });

  test('ends with 2 on issues, each with its place', async () => {
    expect(await simulate(SMALL.replace('span', 'spam'))).toBe(2);
    expect(problems).toContain('small.yaml:3:1: spam: Unknown key; did you mean span?');
    expect(await simulate(SMALL, '--seeds', 'many')).toBe(2);
  });

  test('tells what the detectors would have found with --signals, and which policies cannot be watched', async () => {
    const flapping = `
span: 300s
fleet: {bad: {count: 1}, good: {count: 3}}
streams: {users: {load: 0.5}}
faults:
${[60, 100, 140, 180].map((at) => `  - {at: ${at}s, kind: partition, nodes: bad, for: 20s}`).join('\n')}
policies: [spillway, sed]
`;
    expect(await simulate(flapping, '--signals')).toBe(0);
    expect(out).toMatch(/^spillway: \d+ signal\(s\) in \d+ looks$/m);
    expect(out).toMatch(/^1 +\d+ s +\d+ s +ownership-flapping +bad-1 left work or came back \d+ times/m);
    expect(out).toContain('sed: this policy gives the detectors nothing to look at');
    out = '';
    expect(await simulate(flapping, '--signals', '--json', '--policy', 'spillway')).toBe(0);
    const { policies } = JSON.parse(out) as {
      readonly policies: Readonly<Record<string, { readonly signals: readonly Watched[] }>>;
    };
    const [watched] = policies['spillway']?.signals ?? [];
    expect(watched?.samples).toBeGreaterThan(250);
    expect(watched?.raised).toContainEqual(
      expect.objectContaining({ signal: 'ownership-flapping', subject: { kind: 'node', id: 'bad-1' } }),
    );
    expect(Object.keys(watched?.blind ?? {})).toContain('phantom-slo');
  });

  test('lists policies and hardware with --list, and asks for a scenario otherwise', async () => {
    expect(await run(['simulate', '--list'])).toBe(0);
    expect(out).toMatch(/^sed +\S/m);
    expect(out).toMatch(/^T4$/m);
    expect(await run(['simulate'])).toBe(2);
  });

  test('leaves out a variant whose trace nobody gave, loudly, and refuses to run nothing', async () => {
    const traced = `{streams: {users: {load: null, sizes: trace, arrivals: {kind: trace, format: azure}}}}`;
    expect(await simulate(`${SMALL}variants: {plain: {}, traced: ${traced}}\n`, '--policy', 'sed')).toBe(0);
    expect(problems).toContain('SKIPPED traced: streams.users');
    expect(out).toMatch(/^plain +sed$/m);
    expect(await simulate(`${SMALL}variants: {traced: ${traced}}\n`)).toBe(2);
  });

  test('writes a page with plots and the numbers with --report', async () => {
    const report = join(folder, 'report');
    expect(await simulate(SMALL, '--report', report)).toBe(0);
    expect(readFileSync(join(report, 'index.html'), 'utf8')).toContain('aria-label="Requests that wait');
    expect(existsSync(join(report, 'results.json'))).toBe(true);
  });
});

describe('spillway simulate --compare', () => {
  const BUSY = SMALL.replace('load: 0.7', 'load: 2').replace(
    'classes: {critical: 0.5, low: 0.5}',
    'classes: {critical: {share: 0.5, deadline: 5s}, low: {share: 0.5, deadline: 20s}}',
  );

  test('says of the same users how they fared under the first policy and under each other one', async () => {
    expect(await simulate(BUSY, '--compare', '--policy', 'spillway,sed,random')).toBe(0);
    expect(out.match(/^Of \d+ users of seed 1:$/gm)?.length).toBe(2);
    expect(out).toMatch(
      /^ {2}better under spillway \d+ \(\S+ %\), better under random .*, equal \d+ \(\S+ %\)$/m,
    );
    expect(out).toMatch(/^in time +users +under both +only spillway +only sed +neither$/m);
    expect(out).toMatch(/^critical( +\d+){5}$/m);
    expect(out).toMatch(/^lost most under sed$/m);
    expect(out).toMatch(/^sed +users in time +\S+ % +\S+ % +\S+ %$/m);
  });

  test('gives the comparison in --json and a row for each user in compare.csv', async () => {
    const report = join(folder, 'report');
    const text = `${BUSY}variants: {calm: {}, rush: {streams: {users: {load: 3}}}}\n`;
    expect(await simulate(text, '--compare', '--json', '--seeds', '2', '--report', report)).toBe(0);
    const { compare, variants } = JSON.parse(out) as CompareDocument;
    expect(variants['calm']?.compare).toEqual(compare);
    const [pair] = compare.pairs;
    expect(pair).toMatchObject({ a: 'spillway', b: 'sed' });
    expect(pair?.betterUnderA).toBeGreaterThan(0);
    expect((pair?.betterUnderA ?? 0) + (pair?.betterUnderB ?? 0) + (pair?.equal ?? 0)).toBe(pair?.users);
    expect(pair?.gainedMost.length).toBeLessThanOrEqual(10);
    expect(compare.regret.byPolicy['sed']?.attained.bound).toBeLessThanOrEqual(1);
    const lines = readFileSync(join(report, 'compare.csv'), 'utf8').trimEnd().split('\n');
    const rush = variants['rush']?.compare.pairs[0]?.users ?? 0;
    expect(lines.length).toBe(1 + (pair?.users ?? 0) + rush);
    expect(lines.filter((line) => line.startsWith('rush,spillway,sed,')).length).toBe(rush);
  });

  test('asks for two policies', async () => {
    expect(await simulate(SMALL, '--compare', '--policy', 'sed')).toBe(2);
    expect(problems).toContain('Could not compare: expected at least two policies');
  });
});

interface CompareDocument {
  readonly compare: CompareReport & {
    readonly regret: { readonly byPolicy: Readonly<Record<string, Regret>> };
  };
  readonly variants: Readonly<Record<string, { readonly compare: CompareReport }>>;
}

describe('createProgress', () => {
  test('shows on a terminal how far it is and how long it will take, at most ten times a second', () => {
    let nowMs = 0;
    const lines: string[] = [];
    const progress = createProgress({ isTTY: true, write: (text) => lines.push(text) }, () => nowMs);
    for (const done of [1, 2, 3, 4]) {
      nowMs += 60;
      progress.update(done, 40);
    }
    progress.end();
    expect(lines.map((line) => line.replace('\r\u001b[K', ''))).toEqual([
      '1 of 40 runs, 3 s to go',
      '3 of 40 runs, 3 s to go',
      '',
    ]);
  });

  test('is silent where nobody watches', () => {
    const lines: string[] = [];
    const progress = createProgress({ write: (text) => lines.push(text) });
    progress.update(1, 2);
    progress.end();
    expect(lines).toEqual([]);
  });
});
