import { describe, expect, test } from 'vitest';
import { policySpec, scenarioSpec, streamSpec } from '../../../test/support/scenarios.ts';
import { S } from '../../../test/support/specs.ts';
import { served, userRows } from '../../../test/support/user-rows.ts';
import { runScenario } from '../run-scenario.ts';

describe('UserLog', () => {
  test('keeps as many users as it may, in order, and says at whom it stopped', () => {
    const fates = Array.from({ length: 3_000 }, (_, index) => served(index + 1));
    const all = userRows(fates);
    expect([all.count, all.stoppedAt]).toEqual([3_000, -1]);
    expect(all.columns.endedUs.length).toBe(3_000);
    expect([0, 1_023, 1_024, 2_999].map((row) => all.columns.endedUs[row])).toEqual(
      [1, 1_024, 1_025, 3_000].map((seconds) => seconds * S),
    );
    const part = userRows(fates, 2_000);
    expect([part.count, part.stoppedAt]).toEqual([2_000, 2_000]);
    expect(part.columns.endedUs).toEqual(all.columns.endedUs.subarray(0, 2_000));
  });

  test('tells of a run what its report tells, of the users within the window', () => {
    const scenario = scenarioSpec({
      window: { from: 50 * S, until: 150 * S },
      streams: [
        streamSpec({
          arrivals: { kind: 'poisson', rate: { kind: 'load', load: 1.5 } },
          classes: [{ name: 'normal', share: 1, deadlineUs: 20 * S }],
          users: { triesMax: 3, patientShare: 0.5, thinkUs: [S, 2 * S], hangsUp: true, tellsCount: true },
        }),
      ],
    });
    const { report, users } = runScenario(scenario, policySpec(), 1, { usersMax: 1_000_000 });
    const columns = users?.columns;
    expect(users?.count).toBe(report.all.offered);
    expect(columns?.inTime.filter((inTime) => inTime === 1).length).toBe(
      Math.round(report.all.attained * report.all.offered),
    );
    const counts = [0, 1, 2, 3, 4].map((code) => columns?.end.filter((end) => end === code).length);
    const { served: answered, degraded, refused, failed, gaveUp } = report.all;
    expect(counts).toEqual([answered, degraded, refused, failed, gaveUp]);
    expect(refused).toBeGreaterThan(0);
    const responses = columns?.endedUs.filter((_, row) => columns.end[row] === 0);
    expect(Math.max(...(responses ?? [])) / 1_000).toBe(report.all.responseMs.max);
    expect(Math.max(...(columns?.waitUs ?? [])) / 1_000).toBe(report.all.waitMs.max);
    const isTold = columns?.waitUs.map((waitUs) => (waitUs >= 0 ? 1 : 0));
    expect(isTold?.every((is, row) => (is === 1) === (columns?.end[row] === 0))).toBe(true);
    expect(columns?.arrivedAt.every((at) => at >= 50 * S && at < 150 * S)).toBe(true);
  });
});
