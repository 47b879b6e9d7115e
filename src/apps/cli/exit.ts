/** Exit codes, the same for every command. */
export const DONE = 0;
export const FAILED = 1;
/** Wrong usage, or a configuration with issues. */
export const USAGE = 2;

/** Ends a command with a message for people; never a stack trace. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = FAILED) {
    super(message);
    this.exitCode = exitCode;
  }
}
