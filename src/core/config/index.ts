/** Configuration: types, defaults with their reasons, and the resolver. */
export * from './check.ts';
export * from './defaults.ts';
export * from './input.ts';
export * from './node-url.ts';
export * from './resolve.ts';
export * from './settings.ts';
export type * from './types.ts';
