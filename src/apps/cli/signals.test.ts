import { expect, test } from 'vitest';
import { type Finding, type SignalsPage, signalsText } from './signals.ts';

const NOW = 1_000_000;

function finding(change: Partial<Finding>): Finding {
  return {
    signal: 'ghost-queue',
    severity: 'warn',
    since: NOW - 30_000,
    subject: { kind: 'node', id: 'gpu-7' },
    evidence: { waitingTasks: 12, ratio: 0.123456 },
    says: 'Twelve tasks wait for a node that takes none',
    remedy: 'Cordon it',
    docs: 'docs/signals/ghost-queue.md',
    ...change,
  };
}

const page: SignalsPage = {
  signals: [
    finding({}),
    finding({ signal: 'latched', severity: 'page', subject: { kind: 'gateway', id: '' } }),
  ],
  detectors: [
    { signal: 'ghost-queue', state: 'active', why: '' },
    { signal: 'phantom-slo', state: 'blind', why: 'no client tells what it saw' },
  ],
};

test('signalsText tells pages first, each with evidence and what to do, and what is blind', () => {
  expect(signalsText(page, 80, NOW).split('\n')).toEqual([
    '2 found.',
    'page  latched: gateway, for 30.0 s',
    '      Twelve tasks wait for a node that takes none',
    '      Evidence: waitingTasks 12, ratio 0.123',
    '      Do: Cordon it',
    '      docs/signals/ghost-queue.md',
    'warn  ghost-queue: node gpu-7, for 30.0 s',
    '      Twelve tasks wait for a node that takes none',
    '      Evidence: waitingTasks 12, ratio 0.123',
    '      Do: Cordon it',
    '      docs/signals/ghost-queue.md',
    '',
    'Detectors: 1 active, 1 blind',
    'blind  phantom-slo: no client tells what it saw',
  ]);
});

test('signalsText wraps in forty columns, and lets nobody write control characters', () => {
  const evil = { ...page, signals: [finding({ subject: { kind: 'node', id: '\u001b[2J' } })] };
  const text = signalsText(evil, 40, NOW);
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(41);
  expect(text).not.toContain('\u001b');
});
