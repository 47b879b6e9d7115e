/**
 * `node src/apps/emulator/main.ts --spec FILE.json`: plays an emulated fleet until it is told to end.
 * Prints one line of JSON when every port is open: `{"ready":true,"emulated":true,"controlUrl":…,"nodes":[…]}`.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type EmulatedFleetInput, FleetSpecError, startEmulatedFleet } from '../../emulator/index.ts';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { spec: { type: 'string' } } });
  if (values.spec === undefined)
    throw new FleetSpecError('Cannot start the emulated fleet: --spec FILE is missing');
  const input = JSON.parse(readFileSync(values.spec, 'utf8')) as EmulatedFleetInput;
  const fleet = await startEmulatedFleet(input);
  const nodes = fleet.nodes.map((node) => ({
    id: node.id,
    url: node.url,
    kind: node.spec.kind,
    model: node.spec.model,
    statedHardware: node.spec.statedHardware,
  }));
  process.stdout.write(
    `${JSON.stringify({ ready: true, emulated: true, controlUrl: fleet.controlUrl, nodes })}\n`,
  );
  const stop = (): void => void fleet.close().then(() => process.exit(0));
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.once('disconnect', stop);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(2);
});
