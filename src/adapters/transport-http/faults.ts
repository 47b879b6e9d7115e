/**
 * Which of the port's faults an error of the HTTP client is. By code, never by message; an unknown error after the
 * request was sent counts as a broken connection, before it as a failed connect.
 */
import type { TransportFault } from '../../ports/node-transport.ts';

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
]);

const PROTOCOL_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
  'UND_ERR_RESPONSE',
]);

export function classifyFault(error: unknown, isSent: boolean): TransportFault {
  if (!isSent) return 'connect';
  const code = errorCode(error);
  if (TIMEOUT_CODES.has(code)) return 'timeout';
  // llhttp's own codes: a garbage status line, both framings at once, a bad chunk size.
  if (PROTOCOL_CODES.has(code) || code.startsWith('HPE_')) return 'protocol';
  return 'reset';
}

/** For people and journals: the code and the message, without the request. */
export function describeFault(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const code = errorCode(error);
  return code === '' ? message : `${code}: ${message}`;
}

function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
