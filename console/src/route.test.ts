import { expect, test } from 'vitest';
import { placeOf } from './route.ts';

test.each([
  ['', { screen: 'overview', rest: '' }],
  ['#/nodes', { screen: 'nodes', rest: '' }],
  ['#/requests/a%2Fb.c', { screen: 'requests', rest: 'a/b.c' }],
  ['#/requests/%zz', { screen: 'requests', rest: '%zz' }],
  ['#/nothing', { screen: 'overview', rest: '' }],
] as const)('%s leads to a screen', (hash, place) => {
  expect(placeOf(hash)).toMatchObject(place);
});
