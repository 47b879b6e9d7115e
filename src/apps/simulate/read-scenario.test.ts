import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { issueText } from '../../adapters/config-file/index.ts';
import { POLICIES } from '../../simulator/policies/registry.ts';
import { readScenario, type ScenarioPlan, type ScenarioSource } from './read-scenario.ts';
import { scenarioReference, withKeys } from './scenario-reference.ts';
import { scenarioJsonSchema } from './scenario-schema.ts';

const S = 1_000_000;
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-scenario-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function read(text: string, options: Partial<ScenarioSource> = {}): ReturnType<typeof readScenario> {
  const file = join(folder, 'small.yaml');
  writeFileSync(file, text);
  return readScenario({ file, sets: [], variants: [], policies: [], traceFile: '', ...options });
}

function issues(text: string, options: Partial<ScenarioSource> = {}): string[] {
  const result = read(text, options);
  if (result.kind === 'plan') return [];
  return result.issues.map((issue) => issueText(issue).replaceAll(`${folder}/`, ''));
}

function plan(text: string, options: Partial<ScenarioSource> = {}): ScenarioPlan {
  const result = read(text, options);
  if (result.kind === 'issues') throw new Error(result.issues.map(issueText).join('\n'));
  return result.plan;
}

const SMALL = `
fleet: {t4: {count: 8, hardware: T4}, plain: 2}
streams: {users: {load: 0.85}}
`;

describe('readScenario', () => {
  test('fills in everything that a small scenario leaves out', () => {
    const { name, seeds, variants, bars } = plan(SMALL);
    expect({ name, seeds, bars }).toEqual({ name: 'small', seeds: 1, bars: [] });
    const [only] = variants;
    expect(variants.length).toBe(1);
    expect(only).toMatchObject({ name: '', lacksTrace: [] });
    expect(only?.scenario).toMatchObject({ spanUs: 1_800 * S, drainUs: 120 * S, seed: 1 });
    expect(only?.scenario.policies.map((policy) => policy.name)).toEqual(['spillway', 'round-robin']);
    expect(only?.scenario.fleet.map((group) => [group.name, group.count, group.models])).toEqual([
      ['t4', 8, ['model']],
      ['plain', 2, ['model']],
    ]);
    expect(only?.scenario.streams[0]?.classes).toEqual([{ name: 'normal', share: 1, deadlineUs: 120 * S }]);
  });

  test('reports every problem at once with file, line and column', () => {
    const text = `span: 10x
fleet:
  t4: {count: 8, sped: 2}
  a100: {engine: {kind: slot}}
streams:
  users:
    load: 0.85
    classes: {critical: 0.3, nomal: 0.7}
    sizes: {kind: work, mean: 10}
    spike: {from: 10m, times: 3}
config: {gates: {flow-wait: of}, bounds: {tasksMax: -1}}
policies: [spillway, sedd, {name: x, policy: spillway, config: {bounds: {taskMax: 4}}}]
faults: [{at: 3m, kind: slow, skew: 3s}]
bars: [{metric: goodputRatio, policy: sed}]
`;
    expect(issues(text)).toEqual([
      'small.yaml:1:7: span: Expected a time such as 250ms, 30s, 10m, 1h30m or 2d, at most a year (received "10x")',
      'small.yaml:3:18: fleet.t4.sped: Unknown key; did you mean speed?',
      'small.yaml:4:25: fleet.a100.engine.kind: Expected a mapping with kind: slots, image-batch, text-batch (received "slot")',
      'small.yaml:8:37: streams.users.classes.nomal: Expected a class of the configuration: critical, normal, low (received "nomal")',
      'small.yaml:9:31: streams.users.sizes.mean: Expected a time such as 250ms, 30s, 10m, 1h30m or 2d, at most a year (received 10)',
      'small.yaml:10:12: streams.users.spike.for: Expected a value here; it is missing',
      'small.yaml:11:29: config.gates.flow-wait: Expected one of "on"|"shadow"|"off" (received "of")',
      'small.yaml:11:53: config.bounds.tasksMax: Expected a whole number from 1 to 10000000 tasks (received -1)',
      `small.yaml:12:22: policies[1]: Expected a policy: ${Object.keys(POLICIES).join(', ')} (received "sedd")`,
      'small.yaml:12:74: policies[2].config.bounds.taskMax: Unknown key; did you mean tasksMax?',
      'small.yaml:13:10: faults[0]: Expected times with slow; it is missing',
      'small.yaml:13:37: faults[0].skew: Expected no skew with slow',
      'small.yaml:14:8: bars[0]: Expected atMost or atLeast; both are missing',
      'small.yaml:14:39: bars[0].policy: Expected a policy of the scenario: spillway, sedd, x (received "sed")',
    ]);
  });

  test('asks for one pace: a rate or a load, and neither where users set it', () => {
    const streams = (stream: string): string => `fleet: {n: 1}\nstreams: {users: ${stream}}\n`;
    expect(issues(streams('{}'))[0]).toContain('Expected a rate such as 4/s, or a load such as 0.85');
    expect(issues(streams('{rate: 4/s, load: 1}'))[0]).toContain('Expected either rate or load');
    expect(issues(streams('{rate: 0/s}'))[0]).toContain('Expected a rate such as 4/s');
    expect(issues(streams('{rate: 4/s, arrivals: {kind: closed, users: 3}}'))[0]).toContain(
      'Expected no rate',
    );
    expect(plan(streams('{rate: 240/min}')).variants[0]?.scenario.streams[0]?.arrivals).toEqual({
      kind: 'poisson',
      rate: { kind: 'per-second', perSecond: 4 },
    });
  });

  test('runs the variants alone, each merged over the rest, with problems told where the variant says them', () => {
    const text = `${SMALL}variants:\n  2x: {streams: {users: {load: 2}}}\n  more: {fleet: {t4: {count: 18}}}\n`;
    const loads = plan(text).variants.map(({ name, scenario }) => [
      name,
      scenario.streams[0]?.arrivals,
      scenario.fleet[0]?.count,
      scenario.fleet[0]?.hardware,
    ]);
    const load = (value: number): unknown => ({ kind: 'poisson', rate: { kind: 'load', load: value } });
    expect(loads).toEqual([
      ['2x', load(2), 8, 'T4'],
      ['more', load(0.85), 18, 'T4'],
    ]);
    expect(plan(text, { variants: ['more'] }).variants.map(({ name }) => name)).toEqual(['more']);
    expect(issues(`${text}  bad: {streams: {users: {lode: 2}}}\n`)).toEqual([
      'small.yaml:7:27: variants.bad.streams.users.lode: Unknown key; did you mean load?',
    ]);
    expect(issues(text, { variants: ['3x'] })).toEqual([
      'command line: Expected a variant of the scenario: 2x, more (received "3x")',
    ]);
  });

  test('takes --set over the file, and blames the command line for what it says', () => {
    const sets = ['streams.users.load=2', 'span=1m', 'config.gates.flow-wait=off'];
    const { scenario } = plan(SMALL, { sets }).variants[0] as ScenarioPlan['variants'][number];
    expect(scenario.spanUs).toBe(60 * S);
    expect(scenario.config.gates['flow-wait']).toBe('off');
    expect(issues(SMALL, { sets: ['span=1x', 'load'] })).toEqual([
      'command line: Expected --set path=value, such as streams.users.load=2 (received "load")',
      'command line: span: Expected a time such as 250ms, 30s, 10m, 1h30m or 2d, at most a year (received "1x")',
    ]);
  });

  test('gives a policy its own configuration and process over the shared one', () => {
    const text = `${SMALL}config: {bounds: {tasksMax: 50}}
policies:
  - spillway
  - {name: no-gate, policy: spillway, config: {gates: {flow-wait: off}}}
  - {name: old, policy: round-robin, process: {tasksMax: 500000, restart: 10s, registry: heartbeats, hangUps: missed}}
`;
    const { policies } = plan(text).variants[0]?.scenario ?? { policies: [] };
    expect(policies.map(({ config }) => [config.gates['flow-wait'], config.bounds.tasksMax])).toEqual([
      ['on', 50],
      ['off', 50],
      ['on', 50],
    ]);
    expect(policies[2]?.process).toEqual({
      tasksMax: 500_000,
      restartUs: 10 * S,
      registryIsDurable: false,
      noticesHangUps: false,
    });
    const chosen = plan(text, { policies: ['sed', 'no-gate'] }).variants[0]?.scenario.policies;
    expect(chosen?.map(({ name, policy }) => [name, policy])).toEqual([
      ['sed', 'sed'],
      ['no-gate', 'spillway'],
    ]);
  });

  test('turns spike, staircase and day into one course', () => {
    const course = (keys: string): unknown =>
      plan(`span: 10m\nfleet: {n: 1}\nstreams: {users: {load: 1, ${keys}}}\n`).variants[0]?.scenario
        .streams[0]?.course;
    expect(course('spike: {from: 1m, for: 2m, times: 12}')).toEqual([
      { from: 60 * S, times: 12 },
      { from: 180 * S, times: 1 },
    ]);
    expect(course('staircase: {steps: 3, times: 5}, spike: {from: 5m, for: 1m, times: 2}')).toEqual([
      { from: 0, times: 1 },
      { from: 200 * S, times: 3 },
      { from: 300 * S, times: 6 },
      { from: 360 * S, times: 3 },
      { from: 400 * S, times: 5 },
    ]);
    expect(course('staircase: {steps: 2, times: 5, down: true}')).toEqual([
      { from: 0, times: 1 },
      { from: 150 * S, times: 5 },
      { from: 300 * S, times: 5 },
      { from: 450 * S, times: 1 },
    ]);
    const day = course('diurnal: {period: 10m, low: 1, high: 3, lowAt: 0}') as { times: number }[];
    expect(day.length).toBe(48);
    expect([day[0]?.times, day[24]?.times].map((times) => times?.toFixed(2))).toEqual(['1.00', '3.00']);
  });

  test('refuses options that a policy does not take', () => {
    const policies = (options: string): string =>
      `policies: [{policy: fifo-timeout, options: {${options}}}]\n`;
    expect(issues(SMALL + policies('queueMax: 50'))).toEqual([]);
    expect(issues(SMALL + policies('queueMax: -1'))[0]).toMatch(
      /^small.yaml:4:44: policies\[0\].options: .*queueMax/,
    );
    expect(issues(SMALL + policies('queue: 50'))[0]).toContain('policies[0].options: ');
  });

  test('says which streams lack their trace, takes --trace for them, and refuses a file that is not there', () => {
    const stream = (file: string): string =>
      `fleet: {n: 1}\nstreams: {users: {sizes: trace, arrivals: {kind: trace, format: azure${file}}}}\n`;
    expect(plan(stream('')).variants[0]?.lacksTrace).toEqual(['users']);
    const traceFile = join(folder, 'small.yaml');
    expect(plan(stream(''), { traceFile }).variants[0]?.lacksTrace).toEqual([]);
    expect(issues(stream(', file: no.csv'))[0]).toContain(
      'streams.users.arrivals.file: Expected a file; there is none of this name',
    );
  });

  test('splices traces by stretches, and refuses what has no length or no sizes', () => {
    const stream = (format: string, parts: string): string =>
      `fleet: {n: 1}\nstreams: {users: {sizes: trace, arrivals: {kind: trace, format: ${format}, file: small.yaml, parts: ${parts}}}}\n`;
    const spliced = plan(stream('azure', '[{from: 1m, until: 2m, repeats: 3}, {until: 30s}]'));
    expect(spliced.variants[0]?.scenario.streams[0]?.arrivals).toMatchObject({
      parts: [
        { fromUs: 60 * S, untilUs: 120 * S, repeats: 3 },
        { fromUs: 0, untilUs: 30 * S, repeats: 1 },
      ],
    });
    expect(issues(stream('azure', '[{from: 1m, until: 1m}]'))[0]).toContain(
      'streams.users.arrivals.parts[0]: Expected a part that ends after it begins',
    );
    expect(issues(stream('servegen', '[]'))[0]).toContain('streams.users.sizes: Expected sizes of their own');
  });

  test('leaves out what a pasted spillway.yaml says of sockets, files and nodes', () => {
    const pasted = 'config: {server: {port: 80}, nodes: [{url: "http://gpu:8000"}], seed: 7}\n';
    expect(plan(SMALL + pasted).variants[0]?.scenario.config.seed).toBe(7);
  });
});

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('the page of scenarios has the table that `node scripts/write-scenario-reference.ts` writes', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/scenarios.md'), 'utf8');
  expect(page).toContain('`streams.NAME.users.tries`');
  expect(withKeys(page, scenarioReference())).toBe(page);
});

test('scenario.schema.json is what `node scripts/write-scenario-schema.ts` writes', () => {
  const written: unknown = JSON.parse(readFileSync(join(ROOT, 'scenario.schema.json'), 'utf8'));
  expect(written).toEqual(JSON.parse(JSON.stringify(scenarioJsonSchema())));
});
