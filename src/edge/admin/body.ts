/** Reads a small JSON body. The bound is on bytes received; what is refused is not read to its end. */
import type { IncomingMessage } from 'node:http';
import type { Problem } from './reply.ts';

/** A node with hundreds of models fits; nothing else on this plane is larger. */
export const ADMIN_BODY_BYTES_MAX: number = 256 * 1024;

export type BodyRead =
  | { readonly kind: 'body'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: Problem };

export async function readJsonBody(req: IncomingMessage): Promise<BodyRead> {
  const type = (req.headers['content-type'] ?? 'application/json').split(';', 1)[0]?.trim().toLowerCase();
  // Browsers send other types across origins without asking first.
  if (type !== 'application/json')
    return refused(415, 'bad-request', 'Expected content-type application/json');
  if ((req.headers['content-encoding'] ?? 'identity') !== 'identity') {
    return refused(415, 'bad-request', 'Expected a body without content-encoding');
  }
  const bytes = await collect(req);
  if (bytes === 'too-large')
    return refused(413, 'too-large', `Expected a body of at most ${ADMIN_BODY_BYTES_MAX} bytes`);
  if (bytes === 'broken')
    return refused(400, 'bad-request', 'The request ended before its body was complete');
  if (bytes.length === 0) return { kind: 'body', value: {} };
  try {
    return { kind: 'body', value: JSON.parse(bytes.toString('utf8')) };
  } catch {
    return refused(400, 'bad-request', 'Expected JSON');
  }
}

function refused(status: number, reason: string, detail: string): BodyRead {
  return { kind: 'problem', problem: { status, reason, detail, headers: { connection: 'close' } } };
}

function collect(req: IncomingMessage): Promise<Buffer | 'too-large' | 'broken'> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    req.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > ADMIN_BODY_BYTES_MAX) {
        req.pause();
        resolve('too-large');
      } else chunks.push(chunk);
    });
    req.on('end', () => resolve(Buffer.concat(chunks)));
    req.on('error', () => resolve('broken'));
    req.on('close', () => resolve('broken'));
  });
}
