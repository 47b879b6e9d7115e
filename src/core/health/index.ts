/** What the rest of the program asks about the health of nodes; inside the core each part is imported by itself. */
export { type AcceleratorReading, type HostFinding, hostFinding } from './host-view.ts';
