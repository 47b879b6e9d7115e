/** The demo in its quick form: every process, both policies, the whole road from a client to an emulated node. */
import { expect, it } from 'vitest';
import { runDemo } from '../../src/apps/demo/demo.ts';
import type { DemoDocument } from '../../src/apps/demo/report.ts';

const ENDS = ['served', 'refused', 'failed', 'cancelled'] as const;

it('runDemo plays both policies over real sockets and prints one document that adds up', async () => {
  const written: string[] = [];
  const code = await runDemo({ json: true, quick: true, write: (text) => void written.push(text) });
  expect([0, 1]).toContain(code);
  expect(written, 'standard output holds the document and nothing else').toHaveLength(1);
  const document = JSON.parse(written[0] ?? '') as DemoDocument;
  expect(Object.keys(document)).toEqual(['emulatedSpeedup', 'policies']);
  expect(Object.keys(document.policies)).toEqual(['round-robin', 'spillway']);
  for (const [name, report] of Object.entries(document.policies)) {
    expect(report.users, name).toBeGreaterThan(100);
    expect(report.offered, name).toBeGreaterThanOrEqual(report.users);
    expect(report.served, name).toBeGreaterThan(0);
    expect(report.embedding.served, `${name} serves real embeddings`).toBeGreaterThan(0);
    for (const part of [report, ...Object.values(report.byClass)]) {
      expect(
        ENDS.reduce((sum, end) => sum + part[end], 0),
        name,
      ).toBe(part.users);
    }
    const classes = Object.values(report.byClass);
    for (const field of ['users', ...ENDS] as const) {
      expect(
        classes.reduce((sum, part) => sum + part[field], 0),
        `${name} ${field}`,
      ).toBe(report[field]);
    }
    expect(report.peakRssBytes, name).toBeGreaterThan(0);
  }
  const [old, ours] = [document.policies['round-robin'], document.policies['spillway']];
  expect(old?.refused, 'the old design refuses nobody').toBe(0);
  expect(ours?.refused, 'Spillway refuses what it cannot serve in time').toBeGreaterThan(0);
  expect(ours?.users, 'both meet the same users').toBe(old?.users);
}, 120_000);
