/** `spillway check CONFIG`: every issue with file, line and column, or what the configuration amounts to. */
import { readMemoryLimit } from '../gateway/memory-limit.ts';
import { DONE } from './exit.ts';
import { say, sayJson } from './output.ts';
import { readOrRefuse } from './read-or-refuse.ts';
import type { Environment } from './state.ts';

export async function check(
  file: string,
  options: { readonly json?: boolean },
  environment: Environment,
): Promise<number> {
  const json = options.json === true;
  const { config } = await readOrRefuse({ file, environment, memoryLimitBytes: readMemoryLimit() }, { json });
  const keys = config.tenants.reduce((sum, tenant) => sum + tenant.keys.length, 0);
  const counts = {
    classes: config.scheduler.classes.length,
    tenants: config.tenants.length,
    keys,
    nodes: config.nodes.length,
    models: config.scheduler.models.length,
  };
  if (json) sayJson({ ok: true, issues: [], ...counts });
  else {
    const parts = Object.entries(counts).map(
      ([name, count]) => `${count} ${count === 1 ? name.replace(/(s)?s$/, '$1') : name}`,
    );
    say(`${file}: no issues (${parts.join(', ').replace('1 clas,', '1 class,')})`);
  }
  return DONE;
}
