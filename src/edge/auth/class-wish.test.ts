import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClassWishes, decideClass } from './class-wish.ts';
import type { Tenant } from './keys.ts';

const CLASSES = ['critical', 'normal', 'low'];
const NONE: ClassWishes = {
  header: '',
  serviceTier: undefined,
  bodyPriority: undefined,
  objective: '',
  priority: '',
};

function tenant(ceiling: number, defaultClass: number): Tenant {
  return { id: 't', ceiling, defaultClass, nodeVisible: true };
}

function decide(wishes: Partial<ClassWishes>, ceiling = 0, ignored: string[] = []): string | undefined {
  return CLASSES[
    decideClass(
      { ...NONE, ...wishes },
      tenant(ceiling, Math.max(ceiling, 1)),
      CLASSES,
      (wish) => void ignored.push(wish),
    )
  ];
}

describe('decideClass', () => {
  it.each<[string, Partial<ClassWishes>, string]>([
    ['no wish', {}, 'normal'],
    ['our header', { header: 'critical' }, 'critical'],
    ['tier priority', { serviceTier: 'priority' }, 'critical'],
    ['tier default', { serviceTier: 'default' }, 'normal'],
    ['tier auto', { serviceTier: 'auto' }, 'normal'],
    ['tier flex', { serviceTier: 'flex' }, 'low'],
    ['a body priority below 0', { bodyPriority: -3 }, 'critical'],
    ['a body priority of 0', { bodyPriority: 0 }, 'normal'],
    ['a body priority above 0', { bodyPriority: 9 }, 'low'],
    ['an objective', { objective: 'low' }, 'low'],
    ['urgency 0', { priority: 'u=0' }, 'critical'],
    ['urgency 3', { priority: 'u=3, i' }, 'normal'],
    ['urgency 7', { priority: 'i, u=7' }, 'low'],
    ['no urgency', { priority: 'i' }, 'normal'],
    ['our header before all others', { header: 'low', serviceTier: 'priority', bodyPriority: -1 }, 'low'],
    ['the tier before the objective', { serviceTier: 'flex', objective: 'critical' }, 'low'],
  ])('follows %s', (_title, wishes, className) => {
    expect(decide(wishes)).toBe(className);
  });

  it.each<[string, Partial<ClassWishes>, string]>([
    ['an unknown class', { header: 'emperor' }, 'class-unknown'],
    ['an unknown tier', { serviceTier: 'platinum' }, 'class-unknown'],
    ['an unknown objective', { objective: 'win' }, 'class-unknown'],
    ['a body priority that is no number', { bodyPriority: 'high' }, 'priority-hint-unreadable'],
    ['an urgency out of range', { priority: 'u=9' }, 'priority-hint-unreadable'],
  ])('ignores %s, and says so', (_title, wishes, wish) => {
    const ignored: string[] = [];
    expect(decide(wishes, 0, ignored)).toBe('normal');
    expect(ignored).toEqual([wish]);
  });

  it('never goes above the ceiling, whatever is wished', () => {
    const wishes = fc.record({
      header: fc.constantFrom('', ...CLASSES, 'x'),
      serviceTier: fc.constantFrom(undefined, null, 'priority', 'flex', 'default', 3),
      bodyPriority: fc.oneof(fc.constant(undefined), fc.integer(), fc.double(), fc.string()),
      objective: fc.constantFrom('', ...CLASSES),
      priority: fc.constantFrom('', 'u=0', 'u=7', 'u=1, i', 'garbage'),
    });
    fc.assert(
      fc.property(wishes, fc.nat({ max: 2 }), fc.nat({ max: 2 }), (wish, ceiling, defaultClass) => {
        const index = decideClass(wish, tenant(ceiling, defaultClass), CLASSES, () => {});
        expect(index).toBeGreaterThanOrEqual(ceiling);
        expect(index).toBeLessThan(CLASSES.length);
      }),
    );
  });
});
