/** The repository's own text files, in a stable order, without what is installed, built or recorded. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SourceFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Finding {
  readonly path: string;
  /** Counts from 1; 0 when the whole file is meant. */
  readonly line: number;
  readonly rule: string;
}

const SKIPPED_FOLDERS: ReadonlySet<string> = new Set([
  'node_modules',
  '.git',
  'dist',
  'coverage',
  '.spillway',
]);
const SKIPPED_ENDINGS = /(\.(gguf|log|db|tgz)|(^|\/)package-lock\.json)$/;
/** Known, so that pages may link to them, and without text. */
const IMAGES = /\.png$/;

export function readSourceFiles(root: string): readonly SourceFile[] {
  const paths: string[] = [];
  const walk = (folder: string): void => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() && !SKIPPED_FOLDERS.has(entry.name)) walk(path);
      else if (entry.isFile() && !SKIPPED_ENDINGS.test(path)) paths.push(path);
    }
  };
  walk('');
  return paths
    .sort()
    .map((path) => ({ path, text: IMAGES.test(path) ? '' : readFileSync(join(root, path), 'utf8') }));
}

export function formatFinding(finding: Finding): string {
  return `${finding.path}${finding.line === 0 ? '' : `:${finding.line}`} ${finding.rule}`;
}
