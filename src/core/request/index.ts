/** What a request needs, what it is to the scheduler, and how it ends. */
export * from './needs.ts';
export * from './outcome.ts';
export { PREFIX_BLOCKS_MAX } from './task.ts';
export type * from './task.ts';
