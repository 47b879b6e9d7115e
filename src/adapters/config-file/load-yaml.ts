/** A YAML file as a plain value, with the place of every part of it; or what is wrong with it as YAML. */
import { readFileSync, statSync } from 'node:fs';
import { type Document, LineCounter, parseDocument } from 'yaml';
import type { LocatedIssue } from './issue-text.ts';
import { createLocate, type Locate } from './locate.ts';

/** 20,000 nodes of a few lines each stay below it. */
export const CONFIG_BYTES_MAX: number = 8 * 1024 * 1024;
/** Anchors may be used so often in all; more is an alias bomb. */
const ALIASES_MAX = 1_000;

export interface LoadedYaml {
  /** An empty mapping where there are issues. */
  readonly raw: unknown;
  readonly locate: Locate;
  readonly issues: readonly LocatedIssue[];
}

const NOTHING: LoadedYaml = { raw: {}, locate: () => ({ line: 0, column: 0 }), issues: [] };

export function loadYaml(file: string): LoadedYaml {
  const refused = (rule: string): LoadedYaml => ({
    ...NOTHING,
    issues: [{ path: [], rule, received: '', file, line: 0, column: 0 }],
  });
  let text: string;
  try {
    if (statSync(file).size > CONFIG_BYTES_MAX) return refused(`Expected at most ${CONFIG_BYTES_MAX} bytes`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    return refused(
      code === 'ENOENT'
        ? 'Expected a file; there is none of this name'
        : `Expected a readable file (${code})`,
    );
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true });
  const problems = [...document.errors, ...document.warnings];
  const issues = problems.map((problem): LocatedIssue => {
    const { line, col } = lines.linePos(problem.pos[0]);
    return {
      path: [],
      rule: `Expected YAML: ${problem.message.replaceAll('\n', ' ')}`,
      received: '',
      file,
      line,
      column: col,
    };
  });
  const locate = createLocate(document, lines);
  if (issues.length > 0) return { raw: {}, locate, issues };
  return toPlain(document, locate, refused);
}

/** Aliases are expanded within a bound: a few lines of YAML must not become gigabytes. */
function toPlain(document: Document, locate: Locate, refused: (rule: string) => LoadedYaml): LoadedYaml {
  try {
    const raw: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
    return { raw: raw ?? {}, locate, issues: [] };
  } catch {
    return refused(
      `Expected fewer aliases: at most ${ALIASES_MAX} uses of anchors in all, none of them inside itself`,
    );
  }
}
