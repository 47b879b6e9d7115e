/** What a schema says is wrong, as issues for people: each with its path, the rule, and the value received. */
import type { z } from 'zod';
import { type ConfigIssue, receivedText } from '../../core/config/index.ts';
import { knownKeys, suggestKey } from './suggest.ts';

export interface PathIssue extends ConfigIssue {
  /** The path ends in a key that nobody knows: the place is the key, not its value. */
  readonly isKey?: boolean;
}

export interface SchemaIssueContext {
  readonly schema: z.ZodType;
  readonly raw: unknown;
  /** Whether the value at a path must not be repeated. */
  readonly isSecret?: (path: readonly (string | number)[]) => boolean;
}

export function schemaIssues(
  issues: readonly z.core.$ZodIssue[],
  context: SchemaIssueContext,
): readonly PathIssue[] {
  return issues.flatMap((issue) => toIssues(issue, context));
}

function toIssues(issue: z.core.$ZodIssue, context: SchemaIssueContext): readonly PathIssue[] {
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(context.schema, issue.path);
    return issue.keys.map((key) => {
      const near = suggestKey(key, known);
      const hint = near === undefined ? `known are ${known.join(', ')}` : `did you mean ${near}?`;
      return { path: [...path, key], rule: `Unknown key; ${hint}`, received: '', isKey: true };
    });
  }
  const value = valueAt(context.raw, issue.path);
  const meant = issue.code === 'invalid_union' ? armMeant(issue.errors, value) : undefined;
  if (meant !== undefined)
    return meant.flatMap((inner) =>
      toIssues({ ...inner, path: [...issue.path, ...inner.path] } as z.core.$ZodIssue, context),
    );
  const rule = value === undefined ? 'Expected a value here; it is missing' : sentence(issue.message);
  return [{ path, rule, received: context.isSecret?.(path) === true ? '' : receivedText(value) }];
}

/** Of several forms that a mapping may have, the only one that is a mapping at all: its problems say more. */
function armMeant(
  arms: readonly (readonly z.core.$ZodIssue[])[],
  value: unknown,
): readonly z.core.$ZodIssue[] | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  const fitting = arms.filter((arm) => arm.every((inner) => inner.path.length > 0 || isInside(inner)));
  return fitting.length === 1 ? fitting[0] : undefined;
}

function isInside(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'unrecognized_keys' || issue.code === 'invalid_union';
}

function sentence(message: string): string {
  const text = message
    .replace(/^Invalid (input|option): /, '')
    .replace(/, received .*$/, '')
    .replace(/^expected (object|record)$/, 'Expected a mapping of keys')
    .replace(/^expected (array)$/, 'Expected a list')
    .replace(/^expected (number|string|boolean)$/, 'Expected a $1');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let value = raw;
  for (const part of path) {
    if (value === null || typeof value !== 'object') return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}
