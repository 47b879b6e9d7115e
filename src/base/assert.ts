/** A broken invariant. Never caught inside core: the process, or the simulated run, stops. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

export function invariant(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new InvariantError(rule);
}

/** Ends an exhaustive switch over a union; reaching it means that a new arm was not handled. */
export function assertNever(value: never): never {
  throw new InvariantError(`Unhandled arm: ${JSON.stringify(value)}`);
}
