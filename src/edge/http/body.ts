/**
 * Reading a request's body under two bounds: one per body, and one for all bodies that are being read. Both are
 * checked against Content-Length before the first byte and again while a chunked body grows.
 */
import type { IncomingMessage } from 'node:http';
import type { Bytes } from '../../base/units.ts';

export interface BodyBudget {
  /** Bytes of bodies being read now. */
  bytes: Bytes;
  readonly bytesMax: Bytes;
}

export type BodyRefusal = 'too-large' | 'self-protection';

export interface BodyReader {
  /** The whole body. Called once, or `refused`, or neither when the client left. */
  complete(body: Buffer): void;
  refused(reason: BodyRefusal): void;
}

const NO_BODY: Buffer = Buffer.alloc(0);

export function readBody(
  req: IncomingMessage,
  bytesMax: Bytes,
  budget: BodyBudget,
  reader: BodyReader,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isOver = false;

  function finish(): void {
    isOver = true;
    budget.bytes -= bytes;
  }

  req.on('data', (chunk: Buffer) => {
    if (isOver) return;
    bytes += chunk.length;
    budget.bytes += chunk.length;
    const isTooLarge = bytes > bytesMax;
    if (!isTooLarge && budget.bytes <= budget.bytesMax) {
      chunks.push(chunk);
      return;
    }
    finish();
    chunks.length = 0;
    req.pause();
    reader.refused(isTooLarge ? 'too-large' : 'self-protection');
  });
  req.on('end', () => {
    if (isOver) return;
    finish();
    reader.complete(
      chunks.length === 1 ? (chunks[0] as Buffer) : chunks.length === 0 ? NO_BODY : Buffer.concat(chunks),
    );
  });
  req.on('close', () => {
    if (!isOver) finish();
  });
}
