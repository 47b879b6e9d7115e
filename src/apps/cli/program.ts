/**
 * The commands and their options. Each command's code is loaded when it runs, so that `serve` starts without what the
 * others need and the others without the gateway.
 */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { adminCommand } from './admin-command.ts';
import { addConfig } from './config-program.ts';
import { CliError, DONE, FAILED, USAGE } from './exit.ts';
import { warn } from './output.ts';
import type { Environment } from './state.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'];

/** Runs one command; resolves to its exit code and never throws. */
export async function run(args: readonly string[], environment: Environment = process.env): Promise<number> {
  let exitCode = DONE;
  const program = createProgram(environment, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : USAGE;
    if (error instanceof CliError) {
      warn(error.message);
      return error.exitCode;
    }
    warn(`Failed: ${error instanceof Error ? error.message : String(error)}`);
    return FAILED;
  }
}

type Finish = (exitCode: number) => void;

function createProgram(environment: Environment, finish: Finish): Command {
  const program = new Command('spillway')
    .description('An inference gateway that keeps answering when demand exceeds what the fleet can do.')
    .exitOverride()
    .showHelpAfterError('(see spillway --help, or --help of the command)')
    .addHelpText(
      'after',
      `
Examples:
  spillway serve                                   use the engines found on this machine
  spillway serve --node http://gpu-1:8000          use this node
  spillway serve --config spillway.yaml            use a configuration; changes are taken live
  spillway check spillway.yaml                     every problem with file, line and column
  spillway keys create --tenant acme               a key for a tenant; shown once
  spillway simulate examples/scenarios/incident.yaml   what another policy would have done
  spillway explain req_01                          why a request waits, where it ran, why it was refused

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.`,
    );
  addServe(program, environment, finish);
  addDemo(program, finish);
  addSimulate(program, finish);
  addReplay(program, finish);
  addViews(program, environment, finish);
  addLadder(program, environment, finish);
  addConfig(program, environment, finish);
  addKeys(program, environment, finish);
  return program;
}

function wholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError('Expected a port from 0 to 65535.');
  return Number(text);
}

const SECONDS_PER: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/** `90s`, `10m`, `2h`, in seconds. */
function seconds(text: string): number {
  const match = /^(\d{1,5})([smh])$/.exec(text);
  if (match === null) throw new InvalidArgumentError('Expected a time such as 90s, 10m or 2h.');
  return Number(match[1]) * (SECONDS_PER[match[2] as string] as number);
}

function stageNumber(text: string): number {
  if (!/^[0-3]$/.test(text)) throw new InvalidArgumentError('Expected a stage from 0 to 3.');
  return Number(text);
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

function addServe(program: Command, environment: Environment, finish: Finish): void {
  program
    .command('serve')
    .description('start the gateway')
    .option('-c, --config <file>', 'configuration (YAML); reloaded when it changes')
    .option('-n, --node <url>', 'a node, such as http://gpu-1:8000; may be given often', collect, [])
    .option('-p, --port <port>', 'port of the data plane (default 8480; 0 takes a free one)', wholeNumber)
    .option('--host <address>', 'address to listen on; beyond 127.0.0.1 only with keys')
    .option('--state <folder>', 'registry, keys and admin token; "" keeps everything in memory')
    .addOption(new Option('--log-level <level>', 'log on standard error').choices(LOG_LEVELS).default('info'))
    .option('--json', 'one JSON document on standard output when it listens')
    .addHelpText(
      'after',
      `
Without configuration and nodes it looks for Ollama, vLLM, SGLang, llama.cpp, TEI and Stable Diffusion WebUI on their
usual local ports. Without keys it listens on 127.0.0.1 alone.

Examples:
  spillway serve --node http://gpu-1:8000 --node http://gpu-2:8000
  spillway serve --config spillway.yaml --port 9000

Signals: SIGTERM and SIGINT stop it in order (a second one at once), SIGHUP reloads the configuration.`,
    )
    .action(async (options) => finish(await (await import('./serve.ts')).serve(options, environment)));
  program
    .command('check')
    .description('check a configuration: every problem with file, line and column')
    .argument('<config>', 'configuration (YAML)')
    .option('--json', 'one JSON document on standard output')
    .addHelpText('after', '\nExample:\n  spillway check examples/tenants.yaml && echo good')
    .action(async (file, options) =>
      finish(await (await import('./check.ts')).check(file, options, environment)),
    );
}

function addDemo(program: Command, finish: Finish): void {
  program
    .command('demo')
    .description('an outage, twice: round robin, then Spillway (emulated accelerators)')
    .option('--json', 'one JSON document on standard output')
    .option('--quick', 'a few seconds and a few nodes; no verdict')
    .option('--journal <file>', 'keep the journal of the side of Spillway in this file; see spillway replay')
    .option(
      '-p, --port <port>',
      'port of 127.0.0.1 for its gateways, one after the other, to look on with',
      wholeNumber,
    )
    .option('--tokens <folder>', 'keep their admin-token and metrics-token there (default: a temporary one)')
    .addHelpText('after', DEMO_HELP)
    .action(async (options) => finish(await (await import('../demo/demo.ts')).runDemo(options)));
}

const DEMO_HELP = `
With --port the console, /metrics and the commands that ask a running gateway can be used while it runs; the same
tokens open the gateway of either side.

Examples:
  spillway demo --quick
  spillway demo --json > report.json
  spillway demo --port 8480 --tokens demo-tokens
  spillway top --url http://127.0.0.1:8480 --token "$(cat demo-tokens/admin-token)"`;

function addSimulate(program: Command, finish: Finish): void {
  program
    .command('simulate')
    .description('what would have happened: policies over a fleet and its users, in virtual time')
    .argument('[scenario]', 'scenario (YAML)')
    .option('--list', 'the policies and the hardware that there are')
    .option(
      '-p, --policy <names>',
      'only these policies, separated by commas; also any of those below',
      names,
    )
    .option('--seeds <count>', 'runs per policy, with a 95 % interval over them', count)
    .option('--seed <seed>', 'one run per policy, with this seed', count)
    .option('--variant <name>', 'only this variant; may be given often', collect, [])
    .option('--set <path=value>', 'another value of the scenario; may be given often', collect, [])
    .option('--trace <file>', 'recorded traffic, for streams that follow a trace')
    .option('--workers <count>', 'runs at once (default: one per core)', count)
    .option('--compare', 'the first policy against each other one, user by user, and all against an oracle')
    .option('--signals', 'what the detectors of silent failures would have found, and when')
    .option('--report <folder>', 'write a page with plots (index.html) and the numbers (results.json) there')
    .option('--json', 'one JSON document on standard output')
    .addHelpText('after', SIMULATE_HELP)
    .action(async (file, options) => finish(await (await import('./simulate.ts')).simulate(file, options)));
}

function addReplay(program: Command, finish: Finish): void {
  program
    .command('replay')
    .description('whether the scheduler decides again what a journal says that it decided')
    .argument('<journal>', 'a segment, or the folder of a journal: then its newest run')
    .option('-p, --policy <names>', 'what these policies would have done with the same arrivals', names)
    .option('--overtaken', 'who waited past its deadline, and who was served meanwhile')
    .option('--runs <file>', 'the same for runs of experiments (CSV or JSON, as MLflow writes them)')
    .option('--json', 'one JSON document on standard output')
    .addHelpText('after', REPLAY_HELP)
    .action(async (path, options) => finish(await (await import('./replay.ts')).replay(path, options)));
}

const REPLAY_HELP = `
A gateway with journal.folder in its configuration records everything that happens to its scheduler. Replaying it
gives the same decisions, or tells the first one that is not the same.

Examples:
  spillway replay /var/lib/spillway/journal
  spillway replay /var/lib/spillway/journal --policy round-robin,sed
  spillway replay /var/lib/spillway/journal --runs runs.csv
  spillway demo --quick --journal demo-journal.txt && spillway replay demo-journal.txt

Exit codes: 0 every decision is the same, 1 one differs or the journal is damaged, 2 wrong usage.`;

function names(text: string): readonly string[] {
  return text.split(',').map((name) => name.trim());
}

function count(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}

const SIMULATE_HELP = `
A scenario says which nodes there are, who asks for what and how often, what breaks, and which policies are compared;
the reference is docs/reference/scenarios.md. The policy spillway is the very scheduler of the gateway. Every policy
meets the same users, and the same seed gives the same decisions.

A small scenario:
  fleet: {t4: {count: 20, hardware: T4}, a100: {count: 10, hardware: A100}}
  streams: {users: {load: 1.5, sizes: fitted-images}}

Examples:
  spillway simulate incident.yaml                             every policy of the scenario
  spillway simulate incident.yaml --policy spillway,sed --seeds 10
  spillway simulate incident.yaml --set fleet.t4.count=30     ten more T4s
  spillway simulate overload.yaml --variant 3x --json
  spillway simulate incident.yaml --policy spillway,sed --compare --report report

Bars of the scenario are judged on the mean over seeds. Exit codes: 0 done and every bar held, 1 a bar was missed,
2 wrong usage or an issue in the scenario.`;

function addViews(program: Command, environment: Environment, finish: Finish): void {
  adminCommand(program, 'top', 'a running gateway on one screen: what is wrong, classes, slowest nodes')
    .option('--every <seconds>', 'between two pictures (default: 2)', period)
    .addHelpText(
      'after',
      `
Keys: q ends, s sorts the nodes by another column, the arrows scroll. Without a terminal it prints once.

Examples:
  spillway top
  spillway top --every 0.5
  spillway top --json`,
    )
    .action(async (options) => finish(await (await import('./terminal/top.ts')).top(options, environment)));
  watched(adminCommand(program, 'nodes', 'the nodes of a running gateway'))
    .option('--wide', 'what their hosts and engines say of themselves')
    .addHelpText(
      'after',
      '\nExamples:\n  spillway nodes --watch\n  spillway nodes --wide\n  spillway nodes --url http://gateway:8480 --token "$(cat admin-token)"',
    )
    .action(async (options) => finish(await (await import('./views.ts')).nodes(options, environment)));
  watched(adminCommand(program, 'queue', 'what waits, by class, tenant and model'))
    .addHelpText('after', '\nExamples:\n  spillway queue\n  spillway queue --watch 1')
    .action(async (options) => finish(await (await import('./views.ts')).queue(options, environment)));
  watched(adminCommand(program, 'signals', 'silent failures that were found, with evidence and what to do'))
    .addHelpText('after', '\nExamples:\n  spillway signals\n  spillway signals --json')
    .action(async (options) => finish(await (await import('./signals.ts')).signals(options, environment)));
  watched(
    adminCommand(
      program,
      'ledgers',
      'refusals that could have been served, errors of predictions, work for nobody',
    ),
  )
    .addHelpText('after', '\nExamples:\n  spillway ledgers\n  spillway ledgers --json')
    .action(async (options) => finish(await (await import('./ledgers.ts')).ledgers(options, environment)));
  adminCommand(program, 'explain', 'why a request waits, where it ran, or why it was refused')
    .argument('<id>', 'the x-spillway-id of its answer')
    .addHelpText('after', '\nExample:\n  spillway explain "$(curl -si … | sed -n \'s/^x-spillway-id: //p\')"')
    .action(async (id, options) =>
      finish(await (await import('./views.ts')).explain(id, options, environment)),
    );
}

function watched(command: Command): Command {
  return command.option(
    '-w, --watch [seconds]',
    'on the whole terminal, again and again (default: 2)',
    period,
  );
}

/** Not oftener than four times a second: watching must stay cheap for the gateway. */
function period(text: string): number {
  const seconds = Number(text);
  if (!(seconds >= 0.25 && seconds <= 3_600))
    throw new InvalidArgumentError('Expected seconds from 0.25 to 3600.');
  return seconds;
}

function addLadder(program: Command, environment: Environment, finish: Finish): void {
  adminCommand(program, 'ladder', 'the overload ladder: its stage, why, and setting it for a time')
    .option('--set <stage>', 'stage from 0 to 3, for all models', stageNumber)
    .option('--for <time>', 'how long it holds, such as 90s, 10m or 2h', seconds)
    .option('--why <text>', 'shown and logged with it')
    .option('--release', 'give it back to the evidence')
    .addHelpText(
      'after',
      '\nExamples:\n  spillway ladder\n  spillway ladder --set 2 --for 10m --why "an incident"',
    )
    .action(async (options) => finish(await (await import('./ladder.ts')).ladder(options, environment)));
}

function keysCommand(keys: Command, name: string, description: string): Command {
  return keys
    .command(name)
    .description(description)
    .option('--file <file>', 'file of the keys (default: keys.json in the state folder)')
    .option('-c, --config <file>', 'configuration that names the file of the keys')
    .option('--state <folder>', 'state folder of the gateway')
    .option('--json', 'one JSON document on standard output');
}

function addKeys(program: Command, environment: Environment, finish: Finish): void {
  const keys = program
    .command('keys')
    .description('keys of tenants; only their hashes are stored')
    .addHelpText('after', '\nExample:\n  spillway keys create --tenant acme && spillway keys list');
  keysCommand(keys, 'create', 'make a key and show its secret once')
    .requiredOption('--tenant <id>', 'tenant that the key belongs to')
    .option('--id <id>', 'name of the key (default: tenant and random digits)')
    .option(
      '--class-ceiling <class>',
      'most important class, for a tenant that the configuration does not name',
    )
    .addHelpText('after', '\nExample:\n  SPILLWAY_KEY=$(spillway keys create --tenant acme)')
    .action(async (options) => finish(await (await import('./keys.ts')).keysCreate(options, environment)));
  keysCommand(keys, 'list', 'the keys, without their secrets')
    .addHelpText('after', '\nExample:\n  spillway keys list --config spillway.yaml --json')
    .action(async (options) => finish(await (await import('./keys.ts')).keysList(options, environment)));
  keysCommand(keys, 'revoke', 'take a key back')
    .argument('<id>', 'name of the key')
    .addHelpText('after', '\nExample:\n  spillway keys revoke acme-1')
    .action(async (id, options) =>
      finish(await (await import('./keys.ts')).keysRevoke(id, options, environment)),
    );
}
