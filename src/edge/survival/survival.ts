/** Watches this process and tells the gateway how many of the lowest classes to refuse. Owns its timer. */
import type { Bytes } from '../../base/units.ts';
import type { Gateway } from '../../runtime/contract.ts';
import { CALM, decideSurvival, type SurvivalReading, type SurvivalState } from './decide.ts';
import { createLoopLag, LAG_INTERVAL_MS } from './loop-lag.ts';
import { type ProcessReading, ratioOf, readProcess } from './process-reading.ts';

export interface SurvivalOptions {
  readonly gateway: Gateway;
  /** Memory that this process may use; 0 when unlimited. */
  readonly memoryLimitBytes: Bytes;
  /** Bytes now held for slow readers. */
  spoolBytes(): Bytes;
  /** Called when the number of refused classes changes. */
  onChange?(state: SurvivalState): void;
}

export interface Survival {
  readonly state: SurvivalState;
  loopLag(): { readonly medianMs: number; readonly maxMs: number };
  stop(): void;
}

/** The process is read every half second; lag is measured in between. */
const TICKS_PER_READING = 10;

export function startSurvival(options: SurvivalOptions): Survival {
  const lag = createLoopLag(performance.now());
  let state = CALM;
  let ticks = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    lag.fired(nowMs);
    ticks += 1;
    if (ticks % TICKS_PER_READING === 0) decide(nowMs);
  }, LAG_INTERVAL_MS);
  timer.unref();

  function decide(nowMs: number): void {
    const { survival, scheduler, server } = options.gateway.config;
    const reading: SurvivalReading = {
      loopLagMs: lag.medianMs(),
      ...ratios(readProcess(), options.memoryLimitBytes),
      spoolRatio: options.spoolBytes() / server.spoolBytesTotalMax,
    };
    const before = state.shedClasses;
    state = decideSurvival(state, { reading, limits: survival, classCount: scheduler.classes.length, nowMs });
    if (state.shedClasses === before) return;
    options.gateway.setSurvival(state.shedClasses);
    options.onChange?.(state);
  }

  return {
    get state() {
      return state;
    },
    loopLag: () => ({ medianMs: lag.medianMs(), maxMs: lag.maxMs() }),
    stop: () => clearInterval(timer),
  };
}

function ratios(reading: ProcessReading, memoryLimitBytes: Bytes): SurvivalReading {
  const heapRatio = ratioOf(reading.heapUsedBytes, reading.heapLimitBytes);
  const memoryRatio = ratioOf(reading.rssBytes, memoryLimitBytes);
  const descriptorsRatio = ratioOf(reading.descriptors, reading.descriptorsMax);
  return {
    ...(heapRatio === undefined ? {} : { heapRatio }),
    ...(memoryRatio === undefined ? {} : { memoryRatio }),
    ...(descriptorsRatio === undefined ? {} : { descriptorsRatio }),
  };
}
