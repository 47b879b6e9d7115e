/** The machine behind a node: which engine it runs and how long things take there. */
import type { Rate } from '../../base/units.ts';
import { soloTimeOf } from '../../hardware/solo-time.ts';
import type { Machine } from '../machines/machine.ts';
import { SlotMachine } from '../machines/slot-machine.ts';
import type { NodeGroup } from '../scenario/types.ts';

/** `speed` is relative to the group's hardware. */
export function createMachine({ engine, hardware }: NodeGroup, speed: Rate): Machine {
  if (engine.kind !== 'slots') throw new RangeError(`The engine must be slots; received ${engine.kind}`);
  const soloUs = soloTimeOf(hardware);
  return new SlotMachine({ slots: engine.slots, serviceUs: (demand) => soloUs(demand) / speed });
}
