/** Options of policies as scenario files write them: a number or a word, each with its default. */

export interface NumberOption {
  readonly default: number;
  readonly about: string;
  /** Bounds, included. */
  readonly min: number;
  readonly max: number;
}

export interface WordOption {
  readonly default: string;
  readonly about: string;
  readonly words: readonly string[];
}

export type OptionTable = Readonly<Record<string, NumberOption | WordOption>>;

/** Every option of a table, by its name. */
export type OptionsOf<Table extends OptionTable> = {
  readonly [Name in keyof Table]: Table[Name] extends NumberOption ? number : string;
};

export function numberOption(
  value: number,
  [min, max]: readonly [number, number],
  about: string,
): NumberOption {
  return { default: value, about, min, max };
}

export function wordOption(value: string, words: readonly string[], about: string): WordOption {
  return { default: value, about, words };
}

/** A policy's options could not be read: the message names the option and the rule. */
export class PolicyOptionError extends Error {
  override readonly name = 'PolicyOptionError';
}

/** Defaults with what is given instead; throws PolicyOptionError on names and values that are not in the table. */
export function readOptions<Table extends OptionTable>(
  table: Table,
  given: Readonly<Record<string, number | string>>,
): OptionsOf<Table> {
  const read: Record<string, number | string> = {};
  for (const [name, option] of Object.entries(table)) read[name] = option.default;
  for (const [name, value] of Object.entries(given)) {
    const option = Object.hasOwn(table, name) ? table[name] : undefined;
    if (option === undefined) {
      const names = Object.keys(table).join(', ') || 'none';
      throw new PolicyOptionError(`Could not read the option ${name}: the options are ${names}`);
    }
    read[name] = checked(name, option, value);
  }
  return read as OptionsOf<Table>;
}

function checked(name: string, option: NumberOption | WordOption, value: number | string): number | string {
  if ('words' in option) {
    if (typeof value === 'string' && option.words.includes(value)) return value;
    throw new PolicyOptionError(
      `Could not read the option ${name}: it is one of ${option.words.join(', ')}, not ${value}`,
    );
  }
  if (typeof value === 'number' && value >= option.min && value <= option.max) return value;
  throw new PolicyOptionError(
    `Could not read the option ${name}: it is a number from ${option.min} to ${option.max}, not ${value}`,
  );
}
