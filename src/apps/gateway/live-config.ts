/**
 * Live reload. A valid change is taken without loss; an invalid one leaves everything as it is and says every issue.
 * What cannot change while the gateway runs is named.
 */
import { issueText, type ReadConfig } from '../../adapters/config-file/index.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { RuntimeLog } from '../../runtime/log.ts';

export interface LiveConfigOptions {
  readonly gateway: Gateway;
  readonly log: RuntimeLog;
  /** Reads file and command line again. */
  read(): ReadConfig;
  readonly initial: Extract<ReadConfig, { kind: 'config' }>;
}

export type Reloaded =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'changed'; readonly needsRestart: readonly string[] }
  | { readonly kind: 'refused'; readonly issues: readonly string[] };

export interface LiveConfig {
  origins(): Readonly<Record<string, string>>;
  /** Also for SIGHUP. */
  reload(): Reloaded;
  close(): Promise<void>;
}

export async function startLiveConfig(options: LiveConfigOptions): Promise<LiveConfig> {
  const { gateway, log, initial } = options;
  let current = initial;

  function reload(): Reloaded {
    const read = options.read();
    watcher.set(read.files);
    if (read.kind === 'issues') {
      const issues = read.issues.map(issueText);
      log.error({ issues }, 'The new configuration is invalid; the running one stays in force');
      return { kind: 'refused', issues };
    }
    if (JSON.stringify(read.config) === JSON.stringify(current.config)) return { kind: 'unchanged' };
    current = read;
    const { needsRestart } = gateway.reconfigure(read.config);
    if (needsRestart.length > 0)
      log.warn({ needsRestart }, 'Configuration reloaded; these values wait for a restart');
    else log.info({}, 'Configuration reloaded');
    return { kind: 'changed', needsRestart };
  }

  const { watchFiles } = await import('../../adapters/config-file/watch.ts');
  const watcher = watchFiles(initial.files, reload);
  return {
    origins: () => current.origins,
    reload,
    close: () => watcher.close(),
  };
}
