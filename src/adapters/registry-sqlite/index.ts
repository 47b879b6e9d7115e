/** The durable registry. */
export { RegistryError } from './registry-error.ts';
export { createSqliteRegistry } from './registry-sqlite.ts';
