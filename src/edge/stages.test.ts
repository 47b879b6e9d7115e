import { expect, test } from 'vitest';
import { REMEMBERED_MAX, Stages } from './stages.ts';

function reading(stages: Stages, stage: string, parent = '', tenant = 'a') {
  const ignored: string[] = [];
  const read = stages.read({ stage, parent }, tenant, (wish) => ignored.push(wish));
  return { read, ignored };
}

test('Stages reads a name, and the stage of the parent of the same tenant', () => {
  const stages = new Stages();
  stages.remember('id.1', 'a', 'plan');
  expect(reading(stages, 'draw', 'id.1').read).toEqual({ name: 'draw', parent: 'plan' });
  expect(reading(stages, 'draw', 'id.1', 'b').read).toEqual({ name: 'draw', parent: '' });
  expect(reading(stages, 'draw', 'id.2').read).toEqual({ name: 'draw', parent: '' });
});

test.each(['two words', 'x'.repeat(65), 'a, b', 'line\u0000', 'ä'])(
  'Stages ignores %j and counts it',
  (stage) => {
    expect(reading(new Stages(), stage)).toEqual({ read: undefined, ignored: ['stage-unreadable'] });
  },
);

test(`Stages remembers ${REMEMBERED_MAX} requests, the last ones`, () => {
  const stages = new Stages();
  for (let nth = 0; nth <= REMEMBERED_MAX; nth++) stages.remember(`id.${nth}`, 'a', 'plan');
  expect(reading(stages, 'draw', 'id.0').read?.parent).toBe('');
  expect(reading(stages, 'draw', 'id.1').read?.parent).toBe('plan');
});
