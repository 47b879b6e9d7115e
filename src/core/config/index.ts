/** Configuration: types, defaults with their reasons, and the resolver. */
export * from './defaults.ts';
export * from './settings.ts';
export type * from './types.ts';
