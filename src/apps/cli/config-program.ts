/** `spillway config …`: the commands and their options. */
import { type Command, InvalidArgumentError } from 'commander';
import { adminCommand } from './admin-command.ts';
import type { Environment } from './state.ts';

export function addConfig(
  program: Command,
  environment: Environment,
  finish: (exitCode: number) => void,
): void {
  const config = program
    .command('config')
    .description('the configuration of a running gateway: look, change, go back')
    .addHelpText(
      'after',
      '\nExample:\n  spillway config set classes.critical.weight 12 --why "launch day" && spillway config history',
    );
  adminCommand(config, 'show', 'what is in force and where it came from')
    .argument('[path]', 'only what lies below, such as classes.critical')
    .option('--all', 'defaults as well')
    .addHelpText('after', '\nExamples:\n  spillway config show\n  spillway config show admission --all')
    .action(async (path, options) => finish(await (await load()).configShow(path, options, environment)));
  changing(config, 'set', 'change a value now; it stays over restarts')
    .requiredOption('--why <text>', 'kept in the history')
    .option('--if-version <version>', 'only if nobody has changed it since that version', versionNumber)
    .addHelpText(
      'after',
      `
VALUE is JSON, or else text; null takes the value back to what the file says.

Examples:
  spillway config set tenants.acme.limits.requestsPerMinute 600 --why "agreed for June"
  spillway config set 'models[llama-3.1:8b].off' true --why "broken weights"
  spillway config set bounds.tasksMax null --why "enough of the trial"`,
    )
    .action(async (path, value, options) =>
      finish(await (await load()).configSet({ path, value }, options, environment)),
    );
  changing(config, 'dry-run', 'what set would change; nothing is stored')
    .addHelpText('after', '\nExample:\n  spillway config dry-run admission.flowWaitMsMax 2000')
    .action(async (path, value, options) =>
      finish(await (await load()).configDryRun({ path, value }, options, environment)),
    );
  adminCommand(config, 'history', 'who changed what, when and why; the newest first')
    .addHelpText('after', '\nExample:\n  spillway config history --json')
    .action(async (options) => finish(await (await load()).configHistory(options, environment)));
  adminCommand(config, 'rollback', 'back to what a version said, as a new version; 0 is the file alone')
    .argument('<version>', 'a version of the history', versionNumber)
    .option('--why <text>', 'kept in the history')
    .option('--who <name>', 'kept in the history (default: USER)')
    .addHelpText('after', '\nExample:\n  spillway config rollback 3 --why "it did not help"')
    .action(async (version, options) =>
      finish(await (await load()).configRollback(version, options, environment)),
    );
}

function load(): Promise<typeof import('./config.ts')> {
  return import('./config.ts');
}

function changing(config: Command, name: string, description: string): Command {
  return adminCommand(config, name, description)
    .argument('<path>', 'such as bounds.tasksMax or classes.critical.weight')
    .argument('<value>', 'JSON, or text')
    .option('--who <name>', 'kept in the history (default: USER)');
}

function versionNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Expected the number of a version.');
  return Number(text);
}
