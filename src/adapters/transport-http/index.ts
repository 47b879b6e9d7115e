export type { HttpTransportOptions } from './http-transport.ts';
export { createHttpTransport } from './http-transport.ts';
