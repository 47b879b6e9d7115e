/** Whether the llama engine is installed in its own folder. Tests that need it ask here, and say so when it is not. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const LLAMA_FOLDER: string = fileURLToPath(new URL('.', import.meta.url));
export const LLAMA_INSTALL_COMMAND = 'npm run install:llama';

/** Undefined when installed; else why not, as a sentence without the remedy. */
export function llamaEngineMissing(folder: string = LLAMA_FOLDER): string | undefined {
  const wanted = versionIn(`${folder}package.json`, 'dependencies');
  const manifest = `${folder}node_modules/node-llama-cpp/package.json`;
  if (!existsSync(manifest)) return 'the llama engine is not installed';
  const found = versionIn(manifest, 'version');
  if (found !== wanted) return `the llama engine is installed as ${found}, ${wanted} is wanted`;
  return undefined;
}

function versionIn(path: string, field: 'dependencies' | 'version'): string {
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as {
    version?: string;
    dependencies?: Readonly<Record<string, string>>;
  };
  return (field === 'version' ? manifest.version : manifest.dependencies?.['node-llama-cpp']) ?? 'unknown';
}
