import { expect, test } from 'vitest';
import { sampleAt } from '../../../../test/support/samples.ts';
import type { Look } from '../detector.ts';
import { Past } from '../past.ts';
import type { OutsideSample, WaitingRow } from '../sample.ts';
import { priorityInversion } from './priority-inversion.ts';

const ROW: WaitingRow = {
  className: 'critical',
  model: 'm',
  depth: 3,
  oldestWaitUs: 8_000_000,
  allowedUs: 30_000_000,
  held: { places: 4, byLower: 2, className: 'low', tenant: 't', nodeId: 'n', runningUs: 20_000_000 },
};

function look(row: WaitingRow, outside?: OutsideSample): Look {
  const past = new Past();
  past.add(sampleAt(1, { waiting: [row], ...(outside === undefined ? {} : { outside }) }));
  return priorityInversion.look(past);
}

const evidenceOf = (found: Look): unknown =>
  found.kind === 'seen' ? found.suspicions[0]?.evidence : undefined;

test('priority-inversion names who holds the places, and what the host of the holder lacks', () => {
  const holder = { holderClass: 'low', holderTenant: 't', holderNode: 'n', heldByLower: 0.5 };
  expect(evidenceOf(look(ROW))).toMatchObject(holder);
  expect(evidenceOf(look(ROW))).not.toHaveProperty('holderHost');
  const host = { kind: 'run-queue', says: 'threads on its host wait 7.2 ms for a CPU' } as const;
  expect(evidenceOf(look(ROW, { hosts: [{ nodeId: 'n', ...host }] }))).toMatchObject({
    ...holder,
    holderHost: host.says,
  });
  expect(evidenceOf(look(ROW, { hosts: [{ nodeId: 'other', ...host }] }))).not.toHaveProperty('holderHost');
});

test('priority-inversion stays quiet below its lines', () => {
  const quiet: Look = { kind: 'seen', suspicions: [] };
  expect(look({ ...ROW, oldestWaitUs: 7_499_999 })).toEqual(quiet);
  expect(look({ ...ROW, held: { ...(ROW.held as NonNullable<WaitingRow['held']>), byLower: 1 } })).toEqual(
    quiet,
  );
  const { held: _nobody, ...alone } = ROW;
  expect(look(alone)).toEqual(quiet);
});
