/** Configuration: types, defaults with their reasons, and the resolver. */
export * from './changes.ts';
export * from './check.ts';
export * from './defaults.ts';
export * from './input.ts';
export * from './merge-patch.ts';
export * from './node-url.ts';
export * from './overlay.ts';
export * from './resolve.ts';
export * from './settings.ts';
export type * from './types.ts';
