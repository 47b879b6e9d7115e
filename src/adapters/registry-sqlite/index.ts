/** The durable registry. */
export type { RegistryErrorCode } from './messages.ts';
export { RegistryError } from './registry-error.ts';
export { createSqliteRegistry } from './registry-sqlite.ts';
