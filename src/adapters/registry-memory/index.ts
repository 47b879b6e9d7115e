/** The registry of a run without a state folder. */
export { createMemoryRegistry } from './registry-memory.ts';
