/** The scheduler: made here, driven by the gateway's loop and by the simulator through its contract. */
export type * from './contract.ts';
export * from './scheduler.ts';
export { agedMemory } from './memory.ts';
export { CLASS_RETURN_US } from './retry-hint.ts';
export { SILENT_SINK } from './effects.ts';
export { saneMemory, saneNode, saneTask } from './sane.ts';
