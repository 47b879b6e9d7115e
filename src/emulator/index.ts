/** Emulated accelerators: what this machine has not. Everything they answer says that it is emulated. */
export { type FaultChange, type Faults, HEALTHY } from './faults.ts';
export { type EmulatedFleet, FleetSpecError, startEmulatedFleet } from './fleet.ts';
export {
  type Hardware,
  IMAGE_MODELS,
  type ImageModel,
  type ImageSize,
  imageServiceMs,
  imageUnits,
  imageWorkMs,
  PIXELS_REFERENCE,
  STEPS_REFERENCE,
} from './hardware.ts';
export { lognormalFactor, seededUniform, seedFor, type Uniform } from './noise.ts';
export type { EmulatedNode } from './node-server.ts';
export { type EmulatedFleetInput, type EmulatedNodeInput, parseFleetSpec } from './spec.ts';
export type { NodeTruth } from './truth.ts';
