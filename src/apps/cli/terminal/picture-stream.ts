/**
 * `GET /spillway/v1/watch` from the viewer's side: whole pictures of a gateway as server-sent events, one after another
 * until the gateway goes, falls silent, or the viewer has seen enough.
 */
import type { Picture, WatchedFleet } from '../../../edge/admin/picture.ts';
import { AdminRefusal, type AdminOptions, openAdmin } from '../admin-client.ts';
import { CliError } from '../exit.ts';
import type { Environment } from '../state.ts';

export interface Seen {
  readonly picture: Picture;
  readonly fleet: WatchedFleet;
}

export interface Watching {
  readonly everyMs: number;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

/** Beyond the period: a gateway that answers no more. */
const SILENCE_MS = 5_000;
/** Two thousand nodes take a tenth of it. */
const EVENT_CHARS_MAX = 4_194_304;
const NO_WATCH =
  'This gateway shows no live picture (404 at /spillway/v1/watch): it is of an older version than this command';
const NOT_FOUND = 404;

/** Ends when the gateway closes the stream; throws a `CliError` when it cannot be reached or is silent. */
export async function* pictures(
  options: AdminOptions,
  environment: Environment,
  { everyMs, signal }: Watching,
): AsyncGenerator<Seen> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), everyMs + SILENCE_MS);
  const opening = { signal: AbortSignal.any([signal, silence.signal]) };
  try {
    const response = await openAdmin(`/spillway/v1/watch?everyMs=${everyMs}`, options, environment, opening);
    let fleet: WatchedFleet | undefined;
    for await (const { event, data } of eventsOf(response)) {
      timer.refresh();
      if (event === 'fleet') fleet = data as WatchedFleet;
      else if (event === 'picture' && fleet !== undefined) yield { picture: data as Picture, fleet };
    }
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof AdminRefusal && error.status === NOT_FOUND) throw new AdminRefusal(NO_WATCH, error);
    if (error instanceof CliError) throw error;
    throw new CliError(
      silence.signal.aborted ? 'The gateway is silent' : 'The gateway closed the connection',
    );
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

interface ServerSentEvent {
  readonly event: string;
  readonly data: unknown;
}

async function* eventsOf(response: Response): AsyncGenerator<ServerSentEvent> {
  let rest = '';
  for await (const text of (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(
    new TextDecoderStream(),
  )) {
    rest += text;
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const event = eventOf(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (event !== undefined) yield event;
    }
    if (rest.length > EVENT_CHARS_MAX) throw new CliError('The gateway sent a picture that is too large');
  }
}

/** Undefined for a comment. */
function eventOf(block: string): ServerSentEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
    if (name !== undefined) fields.set(name, value ?? '');
  }
  const data = fields.get('data');
  return data === undefined ? undefined : { event: fields.get('event') ?? 'message', data: JSON.parse(data) };
}
