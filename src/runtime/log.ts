/** The few log calls that the runtime makes; a pino logger fits. No prompts, keys or headers are ever passed. */
export interface RuntimeLog {
  /** Absent where such lines are not written: then nothing is gathered for them. */
  readonly debug?: (fields: Readonly<Record<string, unknown>>, message: string) => void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export const SILENT_LOG: RuntimeLog = Object.freeze({ info() {}, warn() {}, error() {} });

/** What may be told of a thrown value. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
