/** An error of a socket for people and journals: its code and message, without the request. */
export function describeFault(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return code === '' || message.includes(code) ? message : `${code}: ${message}`;
}
