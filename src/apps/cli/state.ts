/** Where a gateway of this user keeps its state when nobody says otherwise. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** `SPILLWAY_STATE`, else the XDG state folder, else `~/.local/state/spillway`. */
export function defaultStateFolder(environment: Environment): string {
  const own = environment['SPILLWAY_STATE'];
  if (own !== undefined && own !== '') return resolve(own);
  const xdg = environment['XDG_STATE_HOME'];
  return join(
    xdg !== undefined && xdg !== '' ? resolve(xdg) : join(homedir(), '.local', 'state'),
    'spillway',
  );
}
