import { describe, expect, test } from 'vitest';
import { BUSY_MIN, HOT_C, type HostView, hostFinding, IDLE_MAX, SETTLED_US } from './host-view.ts';

/** One device, one of ours on it for a long time, and a fresh reading. */
function view(
  change: Partial<HostView> = {},
  device: Partial<HostView['accelerators'][number]> = {},
): HostView {
  return {
    accelerators: [{ id: '0', busy: 0.5, ...device }],
    readingAgeUs: 1_000_000,
    inflight: 1,
    steadyUs: 60_000_000,
    engineInflight: 1,
    ...change,
  };
}

describe('hostFinding', () => {
  test('tells that somebody else uses a node that is busy without us', () => {
    expect(hostFinding(view({ inflight: 0 }, { busy: 0.97 }))).toEqual({
      kind: 'used-by-others',
      says: 'Busy by its host (97 %) but nothing of ours runs there: somebody else uses it',
    });
    expect(hostFinding(view({ inflight: 0 }, { busy: BUSY_MIN - 0.01 }))?.kind).toBe('agrees');
  });

  test('tells that work hangs where the host is idle', () => {
    expect(hostFinding(view({ inflight: 3 }, { busy: IDLE_MAX }))).toEqual({
      kind: 'works-in-vain',
      says: '3 of ours run there but its host is idle (5 %): they hang, or run on no accelerator',
    });
    expect(hostFinding(view({}, { busy: IDLE_MAX + 0.01 }))?.kind).toBe('agrees');
  });

  test('says neither before ours were there, or gone, for long enough when the page was read', () => {
    for (const change of [{ inflight: 0 }, { inflight: 2 }]) {
      const busy = change.inflight === 0 ? 1 : 0;
      const at = (steadyUs: number): HostView => view({ ...change, steadyUs }, { busy });
      expect(hostFinding(at(SETTLED_US + 1_000_000 - 1))).toBeUndefined();
      expect(hostFinding(at(SETTLED_US + 1_000_000))).toBeDefined();
    }
  });

  test('believes the engines of the device before its utilisation, and one device that computes', () => {
    expect(hostFinding(view({ inflight: 2 }, { busy: 0.9, engineActive: 0.01 }))?.kind).toBe('works-in-vain');
    const accelerators = [
      { id: '0', busy: 0 },
      { id: '1', busy: 0.6 },
    ];
    expect(hostFinding(view({ accelerators }))?.kind).toBe('agrees');
  });

  test('tells faults of the hardware first, and not those of a program', () => {
    expect(hostFinding(view({ inflight: 0 }, { busy: 1, xid: 79 }))).toEqual({
      kind: 'device-error',
      says: 'Device 0 last reported XID 79: fallen off the bus',
    });
    expect(hostFinding(view({}, { xid: 31 }))?.kind).toBe('agrees');
    expect(hostFinding(view({}, { xid: 0 }))?.kind).toBe('agrees');
  });

  test('tells heat from its bound on', () => {
    expect(hostFinding(view({}, { temperatureC: HOT_C }))?.kind).toBe('hot');
    expect(hostFinding(view({}, { temperatureC: HOT_C - 1 }))?.kind).toBe('agrees');
  });

  test('tells that an engine is shared when it runs clearly more than ours', () => {
    expect(hostFinding(view({ engineRunning: 3 }))).toEqual({
      kind: 'shared',
      says: 'Its engine runs 3, of which 1 are ours',
    });
    expect(hostFinding(view({ engineRunning: 2 }))?.kind).toBe('agrees');
    expect(hostFinding({ ...view({ engineRunning: 4 }), accelerators: [] })?.kind).toBe('shared');
  });

  test('finds nothing where nothing is known: unknown is neither busy nor idle', () => {
    expect(hostFinding(view({ accelerators: [] }))).toBeUndefined();
    expect(hostFinding(view({ accelerators: [{ id: '0' }], inflight: 0 }))).toBeUndefined();
  });
});
