import { expect, test } from 'vitest';
import { REMEMBERED_MAX, Stages } from './stages.ts';

const told = (name: string) => ({ tenant: 'a', stage: { name, parent: '' } });

interface Told {
  readonly parent?: string;
  readonly traceparent?: string;
  readonly tenant?: string;
}

function reading(stages: Stages, stage: string, { parent = '', traceparent = '', tenant = 'a' }: Told = {}) {
  const ignored: string[] = [];
  const read = stages.read({ stage, parent, traceparent }, tenant, (wish) => ignored.push(wish));
  return { read, ignored };
}

test('Stages reads a name, and the stage of the parent of the same tenant', () => {
  const stages = new Stages();
  stages.remember('id.1', told('plan'));
  expect(reading(stages, 'draw', { parent: 'id.1' }).read).toEqual({ name: 'draw', parent: 'plan' });
  expect(reading(stages, 'draw', { parent: 'id.1', tenant: 'b' }).read).toEqual({ name: 'draw', parent: '' });
  expect(reading(stages, 'draw', { parent: 'id.2' }).read).toEqual({ name: 'draw', parent: '' });
});

const SPAN = `${'a'.repeat(32)}-${'b'.repeat(16)}`;

test('Stages takes the attempt that a request was made in for its parent, where it names none', () => {
  const stages = new Stages();
  stages.rememberAttempt(`00-${SPAN}-01`, told('plan'));
  stages.remember('id.1', told('other'));
  expect(reading(stages, 'draw', { traceparent: `00-${SPAN}-00` }).read?.parent).toBe('plan');
  expect(reading(stages, 'draw', { parent: 'id.1', traceparent: `00-${SPAN}-00` }).read?.parent).toBe(
    'other',
  );
  expect(reading(stages, 'draw', { traceparent: `00-${SPAN}-00`, tenant: 'b' }).read?.parent).toBe('');
  expect(reading(stages, 'draw', { traceparent: `00-${SPAN.replace('b', 'c')}-00` }).read?.parent).toBe('');
  expect(reading(stages, 'draw').read?.parent).toBe('');
});

test.each(['two words', 'x'.repeat(65), 'a, b', 'line\u0000', 'ä'])(
  'Stages ignores %j and counts it',
  (stage) => {
    expect(reading(new Stages(), stage)).toEqual({ read: undefined, ignored: ['stage-unreadable'] });
  },
);

test(`Stages remembers ${REMEMBERED_MAX} requests, the last ones`, () => {
  const stages = new Stages();
  for (let nth = 0; nth <= REMEMBERED_MAX; nth++) stages.remember(`id.${nth}`, told('plan'));
  expect(reading(stages, 'draw', { parent: 'id.0' }).read?.parent).toBe('');
  expect(reading(stages, 'draw', { parent: 'id.1' }).read?.parent).toBe('plan');
});

test(`Stages remembers ${REMEMBERED_MAX} attempts, the last ones`, () => {
  const stages = new Stages();
  const traceOf = (nth: number): string => `00-${'a'.repeat(32)}-${nth.toString(16).padStart(16, '0')}-01`;
  for (let nth = 0; nth <= REMEMBERED_MAX; nth++) stages.rememberAttempt(traceOf(nth), told('plan'));
  expect(reading(stages, 'draw', { traceparent: traceOf(0) }).read?.parent).toBe('');
  expect(reading(stages, 'draw', { traceparent: traceOf(1) }).read?.parent).toBe('plan');
});
