export { createHttpTransport } from './http-transport.ts';
