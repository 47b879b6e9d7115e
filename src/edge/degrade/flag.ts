/**
 * The mark in the body of a lesser answer, beside the header: a member `spillway` of the JSON object, in front of the
 * others, and in streams the same in the first chunk, which also clients see whose status was committed before.
 * Everything else stays byte for byte what the node sent.
 */
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const DATA = Buffer.from('data:');

/** The object with its mark; the bytes as they are when they are no JSON object. */
export function flagObject(json: Buffer, label: string): Buffer {
  return flagAt(json, firstByteFrom(json, 0), label);
}

/** The first event that carries an object, with the mark in it. */
export function flagStream(events: Buffer, label: string): Buffer {
  for (let at = events.indexOf(DATA); at >= 0; at = events.indexOf(DATA, at + 1)) {
    const start = firstByteFrom(events, at + DATA.length);
    if (events[start] === OPEN_BRACE) return flagAt(events, start, label);
  }
  return events;
}

/** Bytes that the mark adds to an object. */
export function flagLength(label: string): number {
  return markOf(label).length + 1;
}

function flagAt(bytes: Buffer, at: number, label: string): Buffer {
  if (bytes[at] !== OPEN_BRACE) return bytes;
  const isEmpty = bytes[firstByteFrom(bytes, at + 1)] === CLOSE_BRACE;
  const mark = Buffer.from(isEmpty ? markOf(label) : `${markOf(label)},`);
  return Buffer.concat([bytes.subarray(0, at + 1), mark, bytes.subarray(at + 1)]);
}

function markOf(label: string): string {
  return `"spillway":{"degraded":${JSON.stringify(label)}}`;
}

function firstByteFrom(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && (bytes[at] as number) <= 0x20) at++;
  return at;
}
