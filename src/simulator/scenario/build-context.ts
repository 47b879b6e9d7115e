/** What building a scenario needs from outside: names that exist elsewhere, and where problems go. */
import { type ConfigIssue, receivedText } from '../../core/config/index.ts';
import type { Path } from './overrides.ts';
import type { PolicySpec } from './types.ts';

export interface Surroundings {
  /** Name of the scenario when the file gives none. */
  readonly name: string;
  /** Names that a scenario may refer to. */
  readonly known: {
    readonly policies: readonly string[];
    readonly hardware: readonly string[];
    readonly variants: readonly string[];
  };
  /** What is wrong with a policy's options; undefined when nothing is. */
  optionsIssue(policy: string, options: PolicySpec['options']): string | undefined;
  /** File of a trace for streams that name none; '' where there is none. */
  readonly traceFile: string;
  /** A path of the file as one that can be opened. */
  resolveFile(path: string): string;
}

export interface BuildContext extends Surroundings {
  readonly issues: readonly ConfigIssue[];
  add(issue: ConfigIssue): void;
  report(path: Path, rule: string, received?: unknown): void;
}

export function createBuildContext(surroundings: Surroundings): BuildContext {
  const issues: ConfigIssue[] = [];
  return {
    ...surroundings,
    issues,
    add: (issue) => void issues.push(issue),
    report: (path, rule, received) => void issues.push({ path, rule, received: receivedText(received) }),
  };
}
