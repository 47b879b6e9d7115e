/**
 * Words and names: what a reader stumbles over and no other tool looks for. Length of files and functions, default
 * exports and cycles are the linter's.
 */
import type { Finding, SourceFile } from './source-files.ts';

interface WordRule {
  readonly pattern: RegExp;
  readonly rule: string;
}

/** Joined from parts, so that this file does not break its own rules. */
const joined = (parts: readonly string[], glue: string): string => parts.join(glue);

const REGISTRY_HOSTS: readonly string[] = [
  joined(['registry', 'npmjs', 'org'], '\\.'),
  joined(['npmjs', 'com'], '\\.'),
  joined(['registry', 'yarnpkg', 'com'], '\\.'),
  joined(['unpkg', 'com'], '\\.'),
  joined(['jsdelivr', 'net'], '\\.'),
  joined(['pypi', 'org'], '\\.'),
  joined(['pythonhosted', 'org'], '\\.'),
  joined(['crates', 'io'], '\\.'),
  joined(['proxy', 'golang', 'org'], '\\.'),
  joined(['rubygems', 'org'], '\\.'),
];

const WORD_RULES: readonly WordRule[] = [
  {
    pattern: new RegExp(`\\b(${joined(['TO', 'DO'], '')}|${joined(['FIX', 'ME'], '')})\\b`),
    rule: 'unfinished work is told in an issue, not in a comment',
  },
  {
    pattern: new RegExp(REGISTRY_HOSTS.join('|')),
    rule: 'no host of a package registry is named: a mirror must do as well',
  },
];

const BANNED_NAME = new RegExp(
  `\\b(?:class|interface|type|function|const|let)\\s+(\\w*(?:${joined(['Man', 'ager'], '')}|${joined(['Hel', 'per'], '')}|${joined(['Ut', 'il'], '')})s?\\w*)`,
  'gi',
);
/** Followed by what declares it: importing such a name from elsewhere is no fault of ours. */
const BANNED_TYPE =
  /\b(?:class|interface|type)\s+(\w+(?:Data|Info))(?=\s*(?:=|\{|<|extends\b|implements\b))/g;
const BANNED_FILE = new RegExp(
  `(^|[-/.])(${joined(['man', 'ager'], '')}|${joined(['hel', 'per'], '')}|${joined(['ut', 'il'], '')})s?([-/.]|$)`,
  'i',
);
const KEBAB_FILE = /^[a-z0-9.]+(-[a-z0-9.]+)*$/;

/** Fails when it sees no TypeScript file. */
export function checkTidy(files: readonly SourceFile[]): readonly Finding[] {
  const code = files.filter((file) => /\.tsx?$/.test(file.path));
  if (code.length === 0) return [{ path: '.', line: 0, rule: 'no source file was seen' }];
  return [...files.flatMap(wordFindings), ...code.flatMap(nameFindings)];
}

function wordFindings(file: SourceFile): readonly Finding[] {
  const findings: Finding[] = [];
  file.text.split('\n').forEach((text, index) => {
    for (const { pattern, rule } of WORD_RULES) {
      if (pattern.test(text)) findings.push({ path: file.path, line: index + 1, rule });
    }
  });
  return findings;
}

function nameFindings(file: SourceFile): readonly Finding[] {
  const findings: Finding[] = [];
  const name = file.path.split('/').at(-1) ?? '';
  if (BANNED_FILE.test(file.path))
    findings.push({ path: file.path, line: 0, rule: 'a file is named after what it does' });
  if (!KEBAB_FILE.test(name)) findings.push({ path: file.path, line: 0, rule: 'file names are kebab-case' });
  for (const pattern of [BANNED_NAME, BANNED_TYPE]) {
    for (const match of file.text.matchAll(pattern)) {
      const line = file.text.slice(0, match.index).split('\n').length;
      findings.push({ path: file.path, line, rule: `${match[1]} says nothing of what it is` });
    }
  }
  return findings;
}
