/** Where a browser is that the console is tested in. Tests that need it say so when it is not there. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export const BROWSER_INSTALL_COMMAND = 'node scripts/install-browser.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Undefined where none is installed. */
export function browserPath(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
}
