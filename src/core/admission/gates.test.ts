import { describe, expect, it } from 'vitest';
import { DEFAULT_GATES } from '../config/defaults.ts';
import { Gates } from './gates.ts';

describe('a protective gate', () => {
  it('refuses and counts while it is on', () => {
    const gates = new Gates(DEFAULT_GATES);
    expect(gates.refuses('limits')).toBe(true);
    expect(gates.counts()).toContainEqual({ gate: 'limits', mode: 'on', refused: 1, wouldRefuse: 0 });
  });

  it('only counts in shadow, and does nothing when off', () => {
    const gates = new Gates({ ...DEFAULT_GATES, limits: 'shadow', ladder: 'off' });
    expect([gates.refuses('limits'), gates.refuses('ladder')]).toEqual([false, false]);
    expect([gates.isWatching('limits'), gates.isWatching('ladder')]).toEqual([true, false]);
    expect(gates.counts()).toContainEqual({ gate: 'limits', mode: 'shadow', refused: 0, wouldRefuse: 1 });
    expect(gates.counts()).toContainEqual({ gate: 'ladder', mode: 'off', refused: 0, wouldRefuse: 0 });
  });

  it('keeps its counts over a change of mode', () => {
    const gates = new Gates({ ...DEFAULT_GATES, limits: 'shadow' });
    gates.refuses('limits');
    gates.configure(DEFAULT_GATES);
    gates.refuses('limits');
    expect(gates.counts()).toContainEqual({ gate: 'limits', mode: 'on', refused: 1, wouldRefuse: 1 });
  });
});
