export type { DeviceMemory } from './accelerator-memory.ts';
export { type LadderWish, OVERRIDE_US_MAX } from './override.ts';
export type { LadderView, ModelLadderView, TriggerView } from './view.ts';
