/**
 * The body that a node gets: the client's bytes with as little changed as possible. Members are replaced or left out
 * in place; everything between them stays byte for byte what the client sent.
 */
import { type Lowered, NOTHING_LOWERED } from '../../../core/degrade/index.ts';
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

/** What differs from attempt to attempt. */
export interface AttemptEdits {
  readonly modelName: string;
  readonly lowered: Lowered;
}

export function editBody(
  body: Buffer,
  edits: BodyEdits,
  { modelName, lowered }: AttemptEdits,
): readonly Uint8Array[] {
  const isModelKept = modelName === edits.model;
  if (isModelKept && !edits.removesHints && lowered === NOTHING_LOWERED) {
    if (edits.streamOptions === '') return [body];
    // The most frequent edit needs no scan: a member is put in front of the others.
    if (!edits.hasStreamOptions) {
      const head = Buffer.from(`{"stream_options":${edits.streamOptions},`, 'latin1');
      return [head, body.subarray(body.indexOf(OPEN_BRACE) + 1)];
    }
  }
  return rebuild(body, edits, { modelJson: isModelKept ? undefined : JSON.stringify(modelName), lowered });
}

interface Replacing {
  readonly modelJson: string | undefined;
  readonly lowered: Lowered;
}

function rebuild(body: Buffer, edits: BodyEdits, replacing: Replacing): readonly Uint8Array[] {
  const pieces: Uint8Array[] = [Buffer.from('{')];
  const comma = Buffer.from(',');
  const push = (bytes: Uint8Array): void => {
    if (pieces.length > 1) pieces.push(comma);
    pieces.push(bytes);
  };
  if (edits.streamOptions !== '' && !edits.hasStreamOptions) {
    push(Buffer.from(`"stream_options":${edits.streamOptions}`, 'latin1'));
  }
  const members = topLevelMembers(body);
  for (const added of missingLimits(members, replacing.lowered)) push(Buffer.from(added, 'latin1'));
  let run: Member | undefined;
  let runEnd = 0;
  for (const member of members) {
    const replacement = replacementOf(body, member, { edits, replacing });
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
function replacementOf(
  body: Buffer,
  member: Member,
  { edits, replacing }: { readonly edits: BodyEdits; readonly replacing: Replacing },
): string | undefined {
  const { name } = member;
  const { modelJson, lowered } = replacing;
  if (name === 'model') return modelJson === undefined ? undefined : `"model":${modelJson}`;
  if (HINT_NAMES.has(name)) return '';
  if (name === 'stream_options' && edits.streamOptions !== '')
    return `"stream_options":${edits.streamOptions}`;
  if (name === 'size' && lowered.size !== '') return `"size":"${lowered.size}"`;
  const limit = limitOf(name, lowered);
  if (limit === 0) return undefined;
  const asked = Number(body.toString('latin1', member.valueStart, member.end));
  // What is lower already stays. A null, which asks for nothing, is no number above 0.
  return asked > 0 && asked <= limit ? undefined : `${JSON.stringify(name)}:${limit}`;
}

const TOKEN_NAMES: readonly string[] = ['max_tokens', 'max_completion_tokens'];
const STEP_NAMES: readonly string[] = ['steps', 'num_inference_steps'];

/** What the member may be at most, or 0. */
function limitOf(name: string, lowered: Lowered): number {
  if (TOKEN_NAMES.includes(name)) return lowered.outputTokensMax;
  return STEP_NAMES.includes(name) ? lowered.steps : 0;
}

/** Members for limits that the client left open. */
function missingLimits(members: readonly Member[], lowered: Lowered): string[] {
  if (lowered === NOTHING_LOWERED) return [];
  const has = (names: readonly string[]): boolean => members.some((member) => names.includes(member.name));
  const added: string[] = [];
  if (lowered.outputTokensMax > 0 && !has(TOKEN_NAMES)) added.push(`"max_tokens":${lowered.outputTokensMax}`);
  if (lowered.steps > 0 && !has(STEP_NAMES)) added.push(`"steps":${lowered.steps}`);
  if (lowered.size !== '' && !has(['size'])) added.push(`"size":"${lowered.size}"`);
  return added;
}
