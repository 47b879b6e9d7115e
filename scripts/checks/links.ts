/** Relative links in Markdown lead to files that exist. Anchors and addresses on the web are not followed. */
import { dirname, join } from 'node:path/posix';
import type { Finding, SourceFile } from './source-files.ts';

const LINK = /\]\(([^)\s]+)\)/g;
const FENCE = /^\s*```/;

/** Fails when it sees no page. */
export function checkLinks(files: readonly SourceFile[]): readonly Finding[] {
  const pages = files.filter((file) => file.path.endsWith('.md'));
  if (pages.length === 0) return [{ path: '.', line: 0, rule: 'no page was seen' }];
  const known = new Set(files.flatMap((file) => pathsOf(file.path)));
  return pages.flatMap((page) => brokenLinks(page, known));
}

/** The file and every folder above it: a link may name a folder. */
function pathsOf(path: string): readonly string[] {
  const parts = path.split('/');
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

function brokenLinks(page: SourceFile, known: ReadonlySet<string>): readonly Finding[] {
  const findings: Finding[] = [];
  let inCode = false;
  page.text.split('\n').forEach((text, index) => {
    if (FENCE.test(text)) inCode = !inCode;
    if (inCode) return;
    for (const [, target = ''] of text.matchAll(LINK)) {
      const path = target.split('#', 1)[0] ?? '';
      if (path === '' || /^[a-z]+:/.test(path)) continue;
      const resolved = join(dirname(page.path), path).replace(/\/$/, '');
      if (!known.has(resolved))
        findings.push({ path: page.path, line: index + 1, rule: `no such file: ${target}` });
    }
  });
  return findings;
}
