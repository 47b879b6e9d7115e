/**
 * Length of functions, each counted without the functions inside it: a factory that returns an interface is as long as
 * its own statements, its methods count for themselves. (What a function holds in all is bounded by the linter.)
 *
 * Reads lines, not syntax: the formatter's check runs in the same gate, so a block ends at the first line that is
 * indented like the one that opened it.
 */
import type { Finding, SourceFile } from './source-files.ts';

const LINES_MAX = 70;

/** An arrow, a declaration, the end of a parameter list over several lines, or a method. */
const OPENINGS: readonly RegExp[] = [
  /=>\s*\{$/,
  /^\s*(export\s+)?(async\s+)?function\b.*\{$/,
  /^\s*\)(:.*)?\s*\{$/,
  /^\s*((private|static|async|override|get|set)\s+|\*)*[#\w$[\]'.]+(<.*>)?\(.*\)(:.*)?\s*\{$/,
];
const STATEMENT = /^\s*(\}\s*)?(if|for|while|switch|catch|else|do|try|with)\b/;

interface Block {
  readonly firstLine: number;
  readonly indent: number;
  readonly isFunction: boolean;
  /** Lines that belong to functions inside. */
  nestedLines: number;
}

export function checkFunctionLengths(files: readonly SourceFile[]): readonly Finding[] {
  const code = files.filter((file) => /\.tsx?$/.test(file.path));
  if (code.length === 0) return [{ path: '.', line: 0, rule: 'no source file was seen' }];
  // A test file is a table of cases inside describe blocks; its length is bounded as a file.
  return code.filter((file) => !file.path.endsWith('.test.ts')).flatMap(longFunctions);
}

function longFunctions(file: SourceFile): readonly Finding[] {
  const findings: Finding[] = [];
  const open: Block[] = [];
  const lines = file.text.split('\n');
  lines.forEach((text, index) => {
    if (text.trim() === '') return;
    const indent = text.length - text.trimStart().length;
    const top = open.at(-1);
    if (top !== undefined && indent === top.indent && /^\s*\}/.test(text)) {
      open.pop();
      const finding = close(file.path, top, index, open);
      if (finding !== undefined) findings.push(finding);
    }
    if (text.endsWith('{')) {
      open.push({ firstLine: index, indent, isFunction: opensFunction(lines, index), nestedLines: 0 });
    }
  });
  return findings;
}

function close(path: string, block: Block, lastLine: number, outer: readonly Block[]): Finding | undefined {
  const total = lastLine - block.firstLine + 1;
  const parent = outer.at(-1);
  if (parent !== undefined) parent.nestedLines += block.isFunction ? total : block.nestedLines;
  const own = total - block.nestedLines;
  if (!block.isFunction || own <= LINES_MAX) return undefined;
  return {
    path,
    line: block.firstLine + 1,
    rule: `a function has ${own} lines of its own, ${LINES_MAX} are allowed`,
  };
}

function opensFunction(lines: readonly string[], index: number): boolean {
  const text = lines[index] ?? '';
  if (STATEMENT.test(text) || !OPENINGS.some((opening) => opening.test(text))) return false;
  return !(/^\s*\)/.test(text) && closesCondition(lines, index));
}

/** A `) {` that ends a condition over several lines is no function: its first line says `if`, `for` or `while`. */
function closesCondition(lines: readonly string[], index: number): boolean {
  const indentOf = (text: string): number => text.length - text.trimStart().length;
  const indent = indentOf(lines[index] ?? '');
  for (let line = index - 1; line >= 0; line--) {
    const text = lines[line] ?? '';
    if (text.trim() !== '' && indentOf(text) <= indent) return STATEMENT.test(text);
  }
  return false;
}
