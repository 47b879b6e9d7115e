/** A body that was read, parsed and checked, or the problem that was sent instead. The schemas are loaded at the first body. */
import { readJsonBody } from './body.ts';
import { sendProblem } from './reply.ts';
import type { Call } from './route.ts';
import type { Checked } from './schemas.ts';

type Schemas = typeof import('./schemas.ts');

export async function checkedBody<T>(
  call: Call,
  check: (schemas: Schemas, body: unknown) => Checked<T>,
): Promise<T | undefined> {
  const body = await readJsonBody(call.req);
  const result = body.kind === 'problem' ? body : check(await import('./schemas.ts'), body.value);
  if (result.kind === 'value') return result.value;
  sendProblem(call.res, result.problem);
  return undefined;
}
