/** What the store and its worker thread say to each other. Records travel as text: the worker never reads them. */

export type RegistryWrite =
  | {
      readonly kind: 'save';
      readonly id: string;
      readonly generation: number;
      readonly record: string;
      readonly updatedAtMs: number;
    }
  | { readonly kind: 'remove'; readonly id: string };

export type WorkerRequest =
  | { readonly kind: 'load' }
  /** One commit for all. */
  | { readonly kind: 'write'; readonly writes: readonly RegistryWrite[] }
  | { readonly kind: 'close' };

export type WorkerReply =
  | { readonly kind: 'loaded'; readonly records: readonly string[] }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly code: RegistryErrorCode; readonly detail: string };

/** Stable codes of what can go wrong with the registry. */
export type RegistryErrorCode =
  /** Another process holds the file. */
  | 'registry-locked'
  /** The file was written by a newer version. */
  | 'registry-schema-newer'
  /** The file is not a registry, or is damaged. */
  | 'registry-corrupt'
  /** The disk is full or the file cannot be written. */
  | 'registry-unwritable'
  /** More writes wait than the bound allows. */
  | 'registry-busy'
  /** The store is closed, or its thread ended. */
  | 'registry-closed';
