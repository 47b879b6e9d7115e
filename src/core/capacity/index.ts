/** What hardware says of speed before anything is measured. */
export { priorOf } from './hardware.ts';
