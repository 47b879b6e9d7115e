/** An issue with its place, and how it is told to people. */
import { type ConfigIssue, pathText } from '../../core/config/index.ts';

export interface LocatedIssue extends ConfigIssue {
  /** The file, or a name such as `command line`. */
  readonly file: string;
  /** From 1; 0 where there is no position. */
  readonly line: number;
  readonly column: number;
}

/** `spillway.yaml:12:5: nodes[0].url: Expected … (received "ftp://x")`. */
export function issueText(issue: LocatedIssue): string {
  const position = issue.line > 0 ? `${issue.file}:${issue.line}:${issue.column}` : issue.file;
  const path = pathText(issue.path);
  const received = issue.received === '' ? '' : ` (received ${issue.received})`;
  return `${position}: ${path === '' ? '' : `${path}: `}${issue.rule}${received}`;
}
