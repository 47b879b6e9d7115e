/** A command that asks a running gateway: the options that all of them share. */
import type { Command } from 'commander';

export function adminCommand(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option('--url <url>', 'admin plane of the gateway (default: the one that runs with the state folder)')
    .option('--token <token>', 'admin token (default: SPILLWAY_TOKEN, or the one in the state folder)')
    .option('--state <folder>', 'state folder of the gateway')
    .option('--cacert <file>', 'authority or certificate of a gateway with TLS')
    .option('--json', 'one JSON document on standard output');
}
