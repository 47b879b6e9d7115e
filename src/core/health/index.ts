/** What the rest of the program asks about the health of nodes; inside the core each part is imported by itself. */
export {
  type HostPattern,
  type HostPressure,
  LONG_RUN_QUEUE_S,
  pressureBetween,
  type PressureCounters,
  pressurePattern,
} from './host-pressure.ts';
export { type AcceleratorReading, type HostFinding, hostFinding } from './host-view.ts';
