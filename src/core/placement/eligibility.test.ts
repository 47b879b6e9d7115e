import { describe, expect, test } from 'vitest';
import { nodeSpec, S } from '../../../test/support/specs.ts';
import { taskRecord } from '../../../test/support/task-records.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import { NodeRecord } from '../health/node-record.ts';
import { type ModelOffer, type Needs, NO_NEEDS } from '../request/needs.ts';
import { asksNothing, ineligibleReasons, missingNeed } from './eligibility.ts';

const CONFIG = defaultSchedulerConfig();
const FULL: ModelOffer = {
  model: 'm',
  contextTokensMax: 1_000,
  capabilities: ['tools'],
  loras: ['known'],
  pixelsMax: 512 * 512,
  embeddingSize: 384,
};

describe('missingNeed', () => {
  test.each<[Partial<Needs>, string]>([
    [{ contextTokens: 1_001 }, 'context-too-long'],
    [{ capabilities: ['vision'] }, 'capability-missing'],
    [{ lora: 'unknown' }, 'lora-missing'],
    [{ pixels: 1_024 * 1_024 }, 'pixels-too-many'],
    [{ embeddingSize: 768 }, 'embedding-size'],
    [{ zone: 'eu' }, 'zone'],
  ])('names what %o lacks: %s', (needs, reason) => {
    expect(missingNeed(FULL, 'us', { ...NO_NEEDS, ...needs })).toBe(reason);
  });

  test.each<Partial<Needs>>([
    { contextTokens: 1_000 },
    { capabilities: ['tools'] },
    { lora: 'known' },
    { pixels: 512 * 512 },
    { embeddingSize: 384 },
    { zone: 'us' },
  ])('finds nothing missing at the limit: %o', (needs) => {
    expect(missingNeed(FULL, 'us', { ...NO_NEEDS, ...needs })).toBeNull();
  });

  test.each<Partial<Needs>>([
    { contextTokens: 1e9 },
    { capabilities: ['vision', 'audio'] },
    { lora: 'any' },
    { pixels: 1e9 },
    { embeddingSize: 9 },
  ])('never refuses by a limit that is unknown: %o', (needs) => {
    expect(missingNeed({ model: 'm' }, '', { ...NO_NEEDS, ...needs })).toBeNull();
  });
});

test.each<Partial<Needs>>([
  { contextTokens: 1 },
  { capabilities: ['tools'] },
  { lora: 'known' },
  { pixels: 1 },
  { embeddingSize: 1 },
  { zone: 'us' },
])('asksNothing is true of no needs, and not of %o', (needs) => {
  expect([asksNothing({ ...NO_NEEDS }), asksNothing({ ...NO_NEEDS, ...needs })]).toEqual([true, false]);
});

describe('ineligibleReasons', () => {
  function reasonsOf(change: (node: NodeRecord) => void, needs: Partial<Needs> = {}): readonly string[] {
    const node = new NodeRecord(nodeSpec('n', { models: [FULL], slots: 2 }), 0);
    node.verified = true;
    change(node);
    const task = taskRecord(1, { workUs: S, deadlineAt: 60 * S, needs: { ...NO_NEEDS, ...needs } });
    return ineligibleReasons(node, task, 0, CONFIG);
  }

  test('are none for an idle node that offers what is needed', () => {
    expect(reasonsOf(() => {})).toEqual([]);
  });

  test.each<[string, (node: NodeRecord) => void]>([
    ['cordoned', (node) => void (node.cordoned = true)],
    ['draining', (node) => void (node.draining = true)],
    ['ejected', (node) => void (node.ejectedUntil = 1)],
    ['suspect', (node) => void (node.suspectUntil = 1)],
    ['refused-recently', (node) => void (node.refusedUntil = 1)],
    ['reading-full', (node) => void (node.readingUntil = 1)],
    ['too-slow', (node) => node.restoreRate('', 0.01, 9)],
    ['no-room', (node) => [8, 9].forEach((id) => node.start(taskRecord(id), 0))],
  ])('name the mark %s', (reason, change) => {
    expect(reasonsOf(change)).toEqual([reason]);
  });

  test('name the trial and the slow start that keep further tasks away', () => {
    expect(
      reasonsOf((node) => {
        node.isTrial = true;
        node.start(taskRecord(9), 0);
      }),
    ).toEqual(['half-open-busy']);
    expect(
      reasonsOf((node) => {
        node.verified = false;
        node.start(taskRecord(9), 0);
      }),
    ).toEqual(['slow-start']);
  });

  test('name every reason at once, and only the model where it is not offered', () => {
    expect(
      reasonsOf((node) => void Object.assign(node, { cordoned: true, suspectUntil: 1 }), { pixels: 1e9 }),
    ).toEqual(['pixels-too-many', 'cordoned', 'suspect']);
    const other = new NodeRecord(nodeSpec('n', { models: [{ model: 'other' }] }), 0);
    expect(ineligibleReasons(other, taskRecord(1), 0, CONFIG)).toEqual(['model-not-offered']);
  });

  test('name a node that was tried before by its id, also after it was registered anew', () => {
    const node = new NodeRecord(nodeSpec('n'), 0);
    const task = taskRecord(1);
    task.triedNodes = ['n'];
    expect(ineligibleReasons(node, task, 0, CONFIG)).toContain('tried-before');
  });
});
