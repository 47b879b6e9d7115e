/** The table of settings as the reference page prints it. */
import { SETTINGS, type Setting } from './settings.ts';

const START = '<!-- settings: written by scripts/write-config-reference.ts -->';
const END = '<!-- end of settings -->';

/** Settings whose value here stands for "no default". */
const WITHOUT_DEFAULT: ReadonlySet<string> = new Set([
  'server.adminPort',
  'nodes[].slots',
  'nodes[].prefixBlocks',
  'models[].quality[].maxTokens',
  'models[].quality[].maxTokensRatio',
  'models[].quality[].steps',
  'tenants[].limits.requestsPerMinute',
  'tenants[].limits.requestsBurst',
  'tenants[].limits.tokensPerMinute',
  'tenants[].limits.tokensBurst',
  'tenants[].limits.concurrency',
]);

export function settingsReference(): string {
  const rows = Object.entries(SETTINGS).map(([path, setting]) => row(path, setting));
  return [
    '| setting | default | range | unit | why | source |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

function row(path: string, { value, min, max, unit, reason, source }: Setting): string {
  const standard = WITHOUT_DEFAULT.has(path) ? 'none' : number(value);
  return `| \`${path}\` | ${standard} | ${number(min)} to ${number(max)} | ${unit} | ${reason} | ${source} |`;
}

function number(value: number): string {
  return Number.isInteger(value) && value >= 10_000 ? value.toLocaleString('en-US') : String(value);
}

/** Puts the table between the marks of the page. */
export function withReference(page: string, table: string): string {
  const start = page.indexOf(START);
  const end = page.indexOf(END);
  if (start < 0 || end < start) return page;
  return `${page.slice(0, start + START.length)}\n${table}\n${page.slice(end)}`;
}
