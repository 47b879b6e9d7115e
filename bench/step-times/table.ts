/** The table of measured step times: rows of one model on one kind of hardware over so many cards are a group. */
export interface Measurement {
  readonly promptTokens: number;
  readonly batch: number;
  readonly outputTokens: number;
  /** Of the whole batch. */
  readonly promptMs: number;
  /** Mean over the output. */
  readonly tokenMs: number;
}

export interface Group {
  readonly model: string;
  readonly hardware: string;
  readonly cards: number;
  readonly rows: readonly Measurement[];
}

export interface Table {
  readonly groups: readonly Group[];
  /** Rows whose whole took more than half as long again as their parts: their prompts ran in several goes. */
  readonly inconsistent: number;
}

const COLUMNS = [
  'model',
  'hardware',
  'prompt_size',
  'batch_size',
  'token_size',
  'prompt_time',
  'token_time',
  'e2e_time',
  'tensor_parallel',
] as const;

/** Throws when a column is missing or a number is none. */
export function parseTable(text: string): Table {
  const [head = '', ...lines] = text.trim().split(/\r?\n/);
  const names = head.split(',');
  const missing = COLUMNS.filter((column) => !names.includes(column));
  if (missing.length > 0) throw new Error(`The table must have the columns ${missing.join(', ')}`);
  const groups = new Map<string, Group & { readonly rows: Measurement[] }>();
  let inconsistent = 0;
  for (const line of lines) {
    const cells = line.split(',');
    const textOf = (column: (typeof COLUMNS)[number]): string => cells[names.indexOf(column)] ?? '';
    const numberOf = (column: (typeof COLUMNS)[number]): number => {
      const value = Number(textOf(column));
      if (!Number.isFinite(value)) throw new Error(`${column} must be a number; received ${textOf(column)}`);
      return value;
    };
    const row: Measurement = {
      promptTokens: numberOf('prompt_size'),
      batch: numberOf('batch_size'),
      outputTokens: numberOf('token_size'),
      promptMs: numberOf('prompt_time'),
      tokenMs: numberOf('token_time'),
    };
    if (numberOf('e2e_time') > 1.5 * (row.promptMs + (row.outputTokens - 1) * row.tokenMs)) {
      inconsistent += 1;
      continue;
    }
    const identity = {
      model: textOf('model'),
      hardware: textOf('hardware'),
      cards: numberOf('tensor_parallel'),
    };
    const key = `${identity.model} ${identity.hardware} ${identity.cards}`;
    const group = groups.get(key) ?? { ...identity, rows: [] };
    group.rows.push(row);
    groups.set(key, group);
  }
  return { groups: [...groups.values()], inconsistent };
}
