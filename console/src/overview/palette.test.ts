import { expect, test } from 'vitest';
import { PICTURED_STATES } from '../../../src/edge/admin/picture.ts';
import { DRAIN_STEPS, drainColours, drainStep, SHAPES } from './palette.ts';

/** WCAG 2.2: relative luminance. */
function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test('every state that the gateway tells has a shape of its own', () => {
  const shapes = PICTURED_STATES.map((state) => SHAPES[state]?.shape);
  expect(shapes).not.toContain(undefined);
  expect(new Set(shapes).size).toBe(PICTURED_STATES.length);
});

test('drain times fall into steps without a gap', () => {
  const steps = [0, 0.9, 1, 999, 1_000, 29_999, 30_000, 1e9].map((ms) => drainStep(ms, 0));
  expect(steps).toEqual([0, 0, 1, 1, 2, 4, 5, 5]);
  expect(drainStep(0, 1)).toBe(1);
});

test.each(['light', 'dark'] as const)(
  'busier is always further from the ground in the %s theme, told by brightness alone',
  (theme) => {
    const steps = drainColours(theme).slice(1).map(luminance);
    expect(steps).toHaveLength(DRAIN_STEPS.length - 1);
    const sorted = steps.toSorted((a, b) => (theme === 'dark' ? a - b : b - a));
    expect(steps).toEqual(sorted);
  },
);
