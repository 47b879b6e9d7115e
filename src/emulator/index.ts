/** Emulated accelerators: what this machine has not. Everything they answer says that it is emulated. */
export type { FaultChange } from './faults.ts';
export { type EmulatedFleet, FleetSpecError, startEmulatedFleet } from './fleet.ts';
export { type Hardware, IMAGE_MODELS, imageWorkMs } from './hardware.ts';
export {
  type ImageSize,
  imageServiceMs,
  imageUnits,
  PIXELS_REFERENCE,
  STEPS_REFERENCE,
} from '../hardware/service-time.ts';
export { seededUniform, seedFor, type Uniform } from './noise.ts';
export type { EmulatedFleetInput, EmulatedNodeInput } from './spec.ts';
export type { NodeTruth } from './truth.ts';
