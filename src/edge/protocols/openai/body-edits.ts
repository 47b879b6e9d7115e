/**
 * The body that a node gets: the client's bytes with as little changed as possible. Members are replaced or left out
 * in place; everything between them stays byte for byte what the client sent.
 */
import { type Member, topLevelMembers } from './json-members.ts';

export interface BodyEdits {
  /** As the client wrote it. */
  readonly model: string;
  /** The body holds `service_tier` or `priority`, which nodes do not see. */
  readonly removesHints: boolean;
  /** JSON of the new `stream_options`, or '' to leave it alone. */
  readonly streamOptions: string;
  /** Whether the client sent `stream_options` at all. */
  readonly hasStreamOptions: boolean;
}

const HINT_NAMES: ReadonlySet<string> = new Set(['service_tier', 'priority']);
const OPEN_BRACE = 0x7b;

export function editBody(body: Buffer, edits: BodyEdits, modelName: string): readonly Uint8Array[] {
  const isModelKept = modelName === edits.model;
  if (isModelKept && !edits.removesHints) {
    if (edits.streamOptions === '') return [body];
    // The most frequent edit needs no scan: a member is put in front of the others.
    if (!edits.hasStreamOptions) {
      const head = Buffer.from(`{"stream_options":${edits.streamOptions},`, 'latin1');
      return [head, body.subarray(body.indexOf(OPEN_BRACE) + 1)];
    }
  }
  return rebuild(body, edits, isModelKept ? undefined : JSON.stringify(modelName));
}

function rebuild(body: Buffer, edits: BodyEdits, modelJson: string | undefined): readonly Uint8Array[] {
  const pieces: Uint8Array[] = [Buffer.from('{')];
  const comma = Buffer.from(',');
  const push = (bytes: Uint8Array): void => {
    if (pieces.length > 1) pieces.push(comma);
    pieces.push(bytes);
  };
  if (edits.streamOptions !== '' && !edits.hasStreamOptions) {
    push(Buffer.from(`"stream_options":${edits.streamOptions}`, 'latin1'));
  }
  let run: Member | undefined;
  let runEnd = 0;
  for (const member of topLevelMembers(body)) {
    const replacement = replacementOf(member, edits, modelJson);
    if (replacement === undefined) {
      run ??= member;
      runEnd = member.end;
      continue;
    }
    if (run !== undefined) push(body.subarray(run.start, runEnd));
    run = undefined;
    if (replacement !== '') push(Buffer.from(replacement));
  }
  if (run !== undefined) push(body.subarray(run.start, runEnd));
  pieces.push(Buffer.from('}'));
  return pieces;
}

/** The new text of a member, '' to leave it out, undefined to keep it. */
function replacementOf(member: Member, edits: BodyEdits, modelJson: string | undefined): string | undefined {
  if (member.name === 'model') return modelJson === undefined ? undefined : `"model":${modelJson}`;
  if (HINT_NAMES.has(member.name)) return '';
  if (member.name === 'stream_options' && edits.streamOptions !== '')
    return `"stream_options":${edits.streamOptions}`;
  return undefined;
}
