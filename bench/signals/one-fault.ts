/** One fault over real sockets, in a process of its own: prints what was raised as JSON. */
import { argv } from 'node:process';
import { SOCKET_CASES } from '../../test/support/socket-cases.ts';
import { runSocketCase } from '../../test/support/socket-run.ts';

const [, , signal, lookMs] = argv;
const one = SOCKET_CASES.find(({ raises }) => raises === signal);
if (one === undefined) throw new Error(`Could not find a fault that raises ${signal}`);
const { raised, ...run } = await runSocketCase(one, Number(lookMs));
process.stdout.write(JSON.stringify({ ...run, raised: [...raised.values()] }));
