import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { defaultGatewayConfig } from '../../core/config/index.ts';
import type { Gateway } from '../../runtime/contract.ts';
import { type SurvivalOptions, startSurvival } from './survival.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const HUGE_BYTES = Number.MAX_SAFE_INTEGER;

function watch(options: Partial<SurvivalOptions>): { shed: number[]; stop(): void } {
  const shed: number[] = [];
  const config = defaultGatewayConfig({ survival: { heapRatio: 0.99 } });
  const gateway = { config, setSurvival: (classes: number) => void shed.push(classes) } as unknown as Gateway;
  const survival = startSurvival({ gateway, memoryLimitBytes: HUGE_BYTES, spoolBytes: () => 0, ...options });
  return { shed, stop: survival.stop };
}

test('startSurvival refuses every class, lowest first, when memory is beyond its limit', () => {
  const { shed, stop } = watch({ memoryLimitBytes: 1 });
  vi.advanceTimersByTime(5_000);
  stop();
  expect(shed).toEqual([1, 2, 3]);
});

test('startSurvival keeps the highest class when slow readers hold too much, and lets all back afterwards', () => {
  let spoolBytes = HUGE_BYTES;
  const causes: string[] = [];
  const { shed, stop } = watch({
    spoolBytes: () => spoolBytes,
    onChange: ({ cause }) => void causes.push(cause),
  });
  vi.advanceTimersByTime(5_000);
  spoolBytes = 0;
  vi.advanceTimersByTime(10_000);
  stop();
  expect(shed).toEqual([1, 2, 1, 0]);
  expect(causes.slice(0, 2)).toEqual(['spool', 'spool']);
});

test('startSurvival leaves a well gateway alone and owns no timer after its end', () => {
  const { shed, stop } = watch({});
  vi.advanceTimersByTime(5_000);
  stop();
  expect([shed, vi.getTimerCount()]).toEqual([[], 0]);
});
