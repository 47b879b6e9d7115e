export type { HttpTransportOptions } from './undici-transport.ts';
export { createHttpTransport } from './undici-transport.ts';
