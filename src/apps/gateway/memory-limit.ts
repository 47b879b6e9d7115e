/** How much memory this process may use: the container's limit, or what the machine has. */
import { totalmem } from 'node:os';
import type { Bytes } from '../../base/units.ts';

export function readMemoryLimit(): Bytes {
  const machine = totalmem();
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < machine ? constrained : machine;
}
