/** What the detectors find, on the wire: instants in milliseconds since 1970. */
import { type MonoUs, US_PER_MS, type WallMs } from '../../base/units.ts';
import type { SignalsView } from '../../core/signals/index.ts';

export interface Clocks {
  readonly monoUs: MonoUs;
  readonly wallMs: WallMs;
}

export function wireSignals({ findings, detectors, lookedAt }: SignalsView, now: Clocks): unknown {
  const wall = (at: MonoUs): WallMs => Math.round(now.wallMs - (now.monoUs - at) / US_PER_MS);
  return {
    signals: findings.map(({ signal, severity, since, subject, evidence, says, remedy }) => ({
      signal,
      severity,
      since: wall(since),
      subject,
      evidence,
      says,
      remedy,
      docs: `docs/signals/${signal}.md`,
    })),
    detectors,
    lookedAt: lookedAt === undefined ? null : wall(lookedAt),
  };
}
