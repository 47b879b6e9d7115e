/** Reads server-sent events from text that arrives in pieces (WHATWG HTML, 9.2): only `event` and `data` are of use here. */

/** An event longer than this is not one of ours: a fleet of 2,000 nodes stays below it. */
export const EVENT_CHARS_MAX: number = 4 * 1024 * 1024;

export interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

export interface EventReader {
  /** The events that are complete with this piece. Throws where one grows beyond the bound. */
  push(piece: string): readonly StreamEvent[];
}

export function createEventReader(): EventReader {
  let rest = '';
  return {
    push(piece) {
      const blocks = (rest + piece).split('\n\n');
      rest = blocks.pop() as string;
      if (rest.length > EVENT_CHARS_MAX) throw new Error('An event of the gateway does not end');
      return blocks.flatMap((block) => eventOf(block) ?? []);
    },
  };
}

function eventOf(block: string): StreamEvent | undefined {
  let name = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice('event: '.length);
    else if (line.startsWith('data: ')) data.push(line.slice('data: '.length));
  }
  return data.length === 0 ? undefined : { name, data: data.join('\n') };
}
