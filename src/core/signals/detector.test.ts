import { expect, test } from 'vitest';
import { sampleAt } from '../../../test/support/samples.ts';
import { Detector, type Look, type Rule, SUBJECTS_MAX, type Suspicion } from './detector.ts';
import { Past } from './past.ts';

function suspicion(id: string): Suspicion {
  return { subject: { kind: 'node', id }, severity: 'warn', evidence: { id }, says: `${id} looks wrong` };
}

/** A rule that says what the test tells it to say, three samples to enter and two to leave. */
function scripted(): { readonly detector: Detector; say(look: Look, times?: number): void } {
  let next: Look = { kind: 'seen', suspicions: [] };
  const rule: Rule = {
    signal: 'stale-readings',
    thresholds: {},
    enterSamples: 3,
    leaveSamples: 2,
    remedy: 'Look at it',
    look: () => next,
  };
  const detector = new Detector(rule);
  const past = new Past();
  let second = 0;
  return {
    detector,
    say(look, times = 1) {
      next = look;
      for (let i = 0; i < times; i++) {
        past.add(sampleAt(++second));
        detector.observe(past);
      }
    },
  };
}

const seen = (...ids: string[]): Look => ({ kind: 'seen', suspicions: ids.map(suspicion) });
const BLIND: Look = { kind: 'blind', why: 'no input' };

test('Detector tells what was suspected for long enough, since when, and stops a while after', () => {
  const { detector, say } = scripted();
  say(seen('a'), 2);
  expect(detector.findings()).toEqual([]);
  expect(detector.view()).toMatchObject({ state: 'watching', why: '1 suspected, not for long enough' });
  say(seen('a'));
  expect(detector.findings()).toMatchObject([
    { signal: 'stale-readings', since: 1_000_000, remedy: 'Look at it' },
  ]);
  say(seen());
  expect(detector.view().state).toBe('active');
  say(seen());
  expect(detector.findings()).toEqual([]);
  expect(detector.view().state).toBe('quiet');
});

test('Detector starts counting anew after a sample that does not suspect', () => {
  const { detector, say } = scripted();
  say(seen('a'), 2);
  say(seen());
  say(seen('a'), 2);
  expect(detector.findings()).toEqual([]);
});

test('Detector raises nothing while it is blind, and ends what it raised before with its lease', () => {
  const { detector, say } = scripted();
  say(BLIND, 10);
  expect(detector.view()).toMatchObject({ state: 'blind', why: 'no input' });
  say(seen('a'), 3);
  say(BLIND, 59);
  expect(detector.view().state).toBe('active');
  say(BLIND);
  expect(detector.findings()).toEqual([]);
  expect(detector.view().state).toBe('blind');
});

test(`Detector watches at most ${SUBJECTS_MAX} subjects, those that are named first`, () => {
  const { detector, say } = scripted();
  say(seen(...Array.from({ length: SUBJECTS_MAX + 5 }, (_, i) => `n${i}`)), 4);
  const findings = detector.findings();
  expect(findings).toHaveLength(SUBJECTS_MAX);
  expect(findings.at(-1)?.subject.id).toBe(`n${SUBJECTS_MAX - 1}`);
});

test('Detector tells what the host of an accused node lacks, where the host tells it', () => {
  const detector = new Detector({
    signal: 'node-variance',
    thresholds: {},
    enterSamples: 1,
    leaveSamples: 1,
    remedy: '',
    look: () => seen('a', 'b'),
  });
  const past = new Past();
  past.add(sampleAt(1, { outside: { hosts: [{ nodeId: 'b', kind: 'cpu-starved', says: 'it waits' }] } }));
  detector.observe(past);
  expect(detector.findings().map(({ evidence }) => evidence)).toEqual([
    { id: 'a' },
    { id: 'b', host: 'it waits' },
  ]);
});
