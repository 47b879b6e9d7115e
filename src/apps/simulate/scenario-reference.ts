/** The keys of scenario files as the reference page prints them, from their JSON schema. */
import { z } from 'zod';
import { createScenarioSchema } from '../../simulator/scenario/schema.ts';

const START = '<!-- keys: written by scripts/write-scenario-reference.ts -->';
const END = '<!-- end of keys -->';

interface JsonSchema {
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string;
  readonly const?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

export function scenarioReference(): string {
  const config = z
    .record(z.string(), z.unknown())
    .meta({ description: 'The configuration of the gateway, in the form of spillway.yaml.' });
  const schema = z.toJSONSchema(createScenarioSchema(config), { io: 'input' }) as JsonSchema;
  const rows = Object.entries(schema.properties ?? {})
    .filter(([key]) => key !== '$schema')
    .flatMap(([key, child]) => rowsOf(key, child, schema.required?.includes(key) === true));
  return ['| key | default | what |', '| --- | --- | --- |', ...rows].join('\n');
}

function rowsOf(path: string, schema: JsonSchema, isRequired: boolean): readonly string[] {
  const standard = schema.default === undefined ? (isRequired ? 'needed' : '') : code(schema.default);
  const choice = schema.enum === undefined ? '' : ` One of ${schema.enum.map(code).join(', ')}.`;
  const row = `| \`${path}\` | ${standard} | ${schema.description ?? ''}${choice} |`;
  return [row, ...below(path, schema)];
}

/** What a mapping, the entries of a mapping by name, or the mappings of a list may hold. */
function below(path: string, schema: JsonSchema): readonly string[] {
  const arms = schema.anyOf ?? schema.oneOf;
  if (arms !== undefined) return arms.flatMap((arm) => below(path, arm));
  if (schema.items !== undefined) return below(`${path}[]`, schema.items);
  const { properties, additionalProperties: named } = schema;
  if (properties === undefined)
    return typeof named === 'object' && (named.anyOf ?? named.properties) !== undefined
      ? below(`${path}.NAME`, named)
      : [];
  const { kind, ...others } = properties;
  const rows = (at: string): readonly string[] =>
    Object.entries(others).flatMap(([key, child]) =>
      rowsOf(`${at}.${key}`, child, schema.required?.includes(key) === true),
    );
  if (kind?.const === undefined)
    return [...(kind === undefined ? [] : rowsOf(`${path}.kind`, kind, true)), ...rows(path)];
  return [`| \`${path}\`, \`kind: ${kind.const}\` | | ${kind.description ?? ''} |`, ...rows(path)];
}

function code(value: unknown): string {
  return `\`${typeof value === 'string' ? value || "''" : JSON.stringify(value)}\``;
}

/** Puts the table between the marks of the page. */
export function withKeys(page: string, table: string): string {
  const start = page.indexOf(START);
  const end = page.indexOf(END);
  if (start < 0 || end < start) return page;
  return `${page.slice(0, start + START.length)}\n${table}\n${page.slice(end)}`;
}
