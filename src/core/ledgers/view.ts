/** The ledgers as they are told: numbers of the scheduler's own units, for who renders them. */
import type { ClassName, MonoUs, Ratio, RefUs } from '../../base/units.ts';
import { type EtaError, type EtaLedger } from './eta.ts';
import type { JudgedReason, MissedChance, RefusalCounts, RefusalLedger } from './refusals.ts';
import { WASTE_CAUSES, type WasteCause, type WasteLedger } from './waste.ts';

export interface ClassRefusals extends Readonly<RefusalCounts> {
  readonly className: ClassName;
  readonly byReason: readonly { readonly reason: JudgedReason; readonly refused: number }[];
}

export interface ClassErrors {
  readonly className: ClassName;
  readonly admission: EtaError | null;
  readonly dispatch: EtaError | null;
}

export interface LedgersView {
  readonly now: MonoUs;
  readonly refusals: {
    readonly classes: readonly ClassRefusals[];
    /** The newest that could have been served, newest first. */
    readonly examples: readonly MissedChance[];
  };
  readonly eta: {
    readonly classes: readonly ClassErrors[];
    /** Of those who came back no earlier than a refusal told them: let in, refused again. */
    readonly hints: { readonly kept: number; readonly broken: number };
  };
  readonly work: {
    readonly usefulUs: RefUs;
    readonly wastedUs: RefUs;
    /** Wasted over all; 0 before anything was done. */
    readonly wastedRatio: Ratio;
    readonly byCause: Readonly<Record<WasteCause, RefUs>>;
  };
}

export interface Ledgers {
  readonly refusals: RefusalLedger;
  readonly eta: EtaLedger;
  readonly waste: WasteLedger;
}

export function ledgersView({ refusals, eta, waste }: Ledgers, now: MonoUs): LedgersView {
  return {
    now,
    refusals: { classes: refusals.counts().map(classRefusals), examples: refusals.examples() },
    eta: {
      classes: eta.classNames.map((className) => ({
        className,
        admission: eta.errorOf(className, 'admission'),
        dispatch: eta.errorOf(className, 'dispatch'),
      })),
      hints: { ...eta.hints },
    },
    work: workOf(waste),
  };
}

function classRefusals(counts: ReturnType<RefusalLedger['counts']>[number]): ClassRefusals {
  const { name, refused, couldHaveServed, couldNot, pending, unjudged, byReason } = counts;
  return {
    className: name,
    refused,
    couldHaveServed,
    couldNot,
    pending,
    unjudged,
    byReason: Array.from(byReason, ([reason, count]) => ({ reason, refused: count })),
  };
}

function workOf({ usefulUs, byCause }: WasteLedger): LedgersView['work'] {
  const wastedUs = WASTE_CAUSES.reduce((sum, cause) => sum + byCause[cause], 0);
  const allUs = usefulUs + wastedUs;
  return { usefulUs, wastedUs, wastedRatio: allUs === 0 ? 0 : wastedUs / allUs, byCause: { ...byCause } };
}
