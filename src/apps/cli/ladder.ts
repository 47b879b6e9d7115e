/** `spillway ladder`: the overload ladder of a running gateway; sets its stage for a time, or gives it back. */
import { type AdminOptions, askAdmin } from './admin-client.ts';
import { CliError, DONE, USAGE } from './exit.ts';
import { say, sayJson, table } from './output.ts';
import type { Environment } from './state.ts';

export interface LadderOptions extends AdminOptions {
  readonly set?: number;
  readonly for?: number;
  readonly why?: string;
  readonly release?: boolean;
}

interface LadderPage {
  readonly mode: string;
  readonly stage: number;
  readonly override: {
    readonly stage: number;
    readonly expires: number;
    readonly who: string;
    readonly why: string;
  } | null;
  readonly models: readonly {
    readonly model: string;
    readonly stage: number;
    readonly triggers: readonly {
      readonly trigger: string;
      readonly value: number | null;
      readonly isLit: boolean;
    }[];
    readonly unblock: string;
  }[];
}

export async function ladder(options: LadderOptions, environment: Environment): Promise<number> {
  const body = wishOf(options);
  const change = body === undefined ? undefined : ({ method: 'PUT', body } as const);
  const page = (await askAdmin('/ladder', options, environment, change)) as LadderPage;
  if (options.json === true) sayJson(page);
  else say(shown(page));
  return DONE;
}

function wishOf(options: LadderOptions): object | undefined {
  const { set, why } = options;
  if (options.release === true) return { stage: null };
  if (set === undefined) return undefined;
  if (options.for === undefined || why === undefined)
    throw new CliError(
      'Expected --for and --why with --set, such as --set 2 --for 10m --why "an incident"',
      USAGE,
    );
  return { stage: set, seconds: options.for, why };
}

function shown(page: LadderPage): string {
  const lines = [`stage ${page.stage}${page.mode === 'on' ? '' : ` (the gate is ${page.mode})`}`];
  const { override } = page;
  if (override !== null) {
    const leftS = Math.max(0, Math.round((override.expires - Date.now()) / 1_000));
    lines.push(`set by ${override.who} for ${leftS} s more: ${override.why}`);
  }
  const rows = page.models.map(({ model, stage, triggers, unblock }) => [
    model,
    String(stage),
    ...triggers.map(({ value, isLit }) => `${value === null ? '?' : value.toFixed(2)}${isLit ? '*' : ''}`),
    unblock,
  ]);
  if (rows.length > 0) lines.push(table(['MODEL', 'STAGE', 'MEMORY', 'QUEUE', 'MISSES', 'LEAVES BY'], rows));
  return lines.join('\n');
}
