/** A row of the registry, and how a baseline becomes one. */
import { msToUs } from '../../../base/units.ts';
import type { Policy, PolicyContext } from '../policy.ts';
import { BaselinePolicy, type DisciplineFactory } from './baseline-policy.ts';
import { type NumberOption, numberOption, type OptionsOf, type OptionTable, readOptions } from './options.ts';

export interface PolicyEntry {
  readonly name: string;
  /** One line. */
  readonly about: string;
  /** Where the rule comes from. */
  readonly source: string;
  readonly options: OptionTable;
  /** Throws PolicyOptionError when the options cannot be read. */
  create(context: PolicyContext, options: Readonly<Record<string, number | string>>): Policy;
}

/** Options of every baseline: how it treats nodes that fail. */
const COMMON: Readonly<Record<keyof CommonOptions, NumberOption>> = {
  attempts: numberOption(3, [1, 100], 'most attempts of a request, each on another node'),
  failuresMax: numberOption(
    3,
    [0, 1000],
    'failures in a row after which a node takes nothing for the cooldown; 0 for never',
  ),
  cooldownMs: numberOption(10_000, [0, 3_600_000], 'how long it then takes nothing'),
  timeoutMs: numberOption(
    0,
    [0, 86_400_000],
    'an attempt that is silent for so long has failed; 0 for never',
  ),
};

export interface CommonOptions {
  readonly attempts: number;
  readonly failuresMax: number;
  readonly cooldownMs: number;
  readonly timeoutMs: number;
}

export interface BaselineRow<Table extends OptionTable> {
  readonly name: string;
  readonly about: string;
  readonly source: string;
  readonly options?: Table;
  /** Where the original differs from the common defaults. */
  readonly defaults?: Partial<CommonOptions>;
  discipline(options: OptionsOf<Table>): DisciplineFactory;
}

export function baseline<Table extends OptionTable = Record<never, never>>(
  row: BaselineRow<Table>,
): PolicyEntry {
  const { name, about, source, defaults = {} } = row;
  const common: OptionTable = Object.fromEntries(
    Object.entries(COMMON).map(([key, option]) => [
      key,
      { ...option, default: defaults[key as keyof CommonOptions] ?? option.default },
    ]),
  );
  const table: OptionTable = { ...row.options, ...common };
  return {
    name,
    about,
    source,
    options: table,
    create(context, given) {
      const options = readOptions(table, given);
      const own = options as unknown as OptionsOf<Table>;
      const shared = options as unknown as CommonOptions;
      return new BaselinePolicy(
        context,
        {
          attempts: Math.floor(shared.attempts),
          failuresMax: shared.failuresMax,
          cooldownUs: msToUs(shared.cooldownMs),
          timeoutUs: msToUs(shared.timeoutMs),
        },
        row.discipline(own),
      );
    },
  };
}
