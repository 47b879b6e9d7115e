/**
 * A task: what the scheduler knows of one request. Shapes, prompts and credentials stay at the edge.
 */
import type { Alternative } from '../degrade/alternative.ts';
import type { Bytes, ClassName, ModelId, MonoUs, RefUs, TaskId, TenantId, Tokens } from '../../base/units.ts';
import type { Needs } from './needs.ts';

/** Most blocks of a prompt that are considered; what follows is computed anew. */
export const PREFIX_BLOCKS_MAX = 512;

/** How a prompt begins, for nodes that keep what they have computed of prompts. */
export interface TaskPrefix {
  /**
   * Ids of the prompt's blocks from its beginning, at most `PREFIX_BLOCKS_MAX`. Each covers all before it, the model and who
   * may share it: equal ids are equal beginnings.
   */
  readonly blocks: readonly number[];
  /** Work that a node saves for each of them that it still keeps. */
  readonly workUsPerBlock: RefUs;
}

/** Which stage of a workflow a request is, as its client tells; only ever counted. */
export interface TaskStage {
  readonly name: string;
  /** The stage whose answer it works on, or ''. */
  readonly parent: string;
}

export interface TaskSpec {
  /** Unique and growing; the caller numbers tasks in order of arrival. */
  readonly id: TaskId;
  /** A configured class; the edge has clamped it already. */
  readonly className: ClassName;
  readonly tenant: TenantId;
  /** Canonical model id (aliases resolved at the edge). */
  readonly model: ModelId;
  readonly needs: Needs;
  /** Estimated work of the whole task. */
  readonly workUs: RefUs;
  /** Estimated work up to the first content byte; equals `workUs` unless the deadline bounds the first byte. */
  readonly firstByteWorkUs: RefUs;
  /** Bytes held while the task waits (body and headers); counted against the byte bound. */
  readonly bytes: Bytes;
  /** Absolute bound on the first content byte (streams) or on completion (everything else). */
  readonly deadlineAt: MonoUs;
  /**
   * Whether the deadline came from the client. A class default is raised to four times the best node's service
   * time when the task is submitted; a client's own wish is taken as it is.
   */
  readonly deadlineWished: boolean;
  /** Whether the deadline bounds the first content byte instead of completion. */
  readonly stream: boolean;
  /** Hash of the body for the poison rule, or '' when none was taken. */
  readonly fingerprint: string;
  /** Lesser answers that may stand in, the first first; absent when there are none. */
  readonly alternatives?: readonly Alternative[] | undefined;
  /** Estimated tokens of prompt and output, as limits count them; absent for 0. */
  readonly tokens?: Tokens;
  /** The prompt's part of them. */
  readonly promptTokens?: Tokens;
  /** How often the client has tried before, as it says itself; absent or 0 for a first attempt. */
  readonly retryCount?: number;
  /** Absent where no node is known to keep prompts, or the request has none. */
  readonly prefix?: TaskPrefix | undefined;
  readonly stage?: TaskStage | undefined;
}

/** What the edge knows of a request's size; turned into work by the model's profile. */
export interface RequestShape {
  /** Bytes of the prompt, input or messages as they came. */
  readonly promptBytes: Bytes;
  /** Upper bound on output tokens asked for, or 0 when absent. */
  readonly outputTokensMax: number;
  readonly images: number;
  /** Diffusion steps per image, or 0 when not given. */
  readonly steps: number;
  /** Pixels per image, or 0 when not given. */
  readonly pixelsPerImage: number;
  /** Work stated by the caller (generic wire), or 0. */
  readonly statedWorkUs: RefUs;
  /** Set when the answer is no text of the model: an embedding. */
  readonly hasNoOutput?: true;
}

/** What a node reported of a finished task. Absent fields are unknown. */
export interface Usage {
  readonly promptTokens?: number;
  readonly outputTokens?: number;
}
