/** The control port of the emulated fleet. */
import type { FaultChange, NodeTruth } from '../../emulator/index.ts';

export async function truthOf(controlUrl: string): Promise<readonly NodeTruth[]> {
  return (await (await fetch(`${controlUrl}/truth`)).json()) as readonly NodeTruth[];
}

export async function setFaults(controlUrl: string, nodeId: string, change: FaultChange): Promise<void> {
  const body = JSON.stringify(change);
  const answer = await fetch(`${controlUrl}/nodes/${nodeId}/faults`, { method: 'POST', body });
  if (!answer.ok) throw new Error(`Cannot switch the emulated node ${nodeId}: ${await answer.text()}`);
}
