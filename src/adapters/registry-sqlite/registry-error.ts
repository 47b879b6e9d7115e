/** What went wrong with the registry; callers tell errors apart by `code`, never by the text. */
import type { RegistryErrorCode } from './messages.ts';

const RETRYABLE: ReadonlySet<RegistryErrorCode> = new Set([
  'registry-locked',
  'registry-busy',
  'registry-unwritable',
]);

export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly code: RegistryErrorCode;
  readonly retryable: boolean;

  constructor(code: RegistryErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.retryable = RETRYABLE.has(code);
  }
}
