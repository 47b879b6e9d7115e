/**
 * Stages of workflows, as clients tell them: `x-spillway-stage: NAME`, and in `x-spillway-parent` the id of the request whose answer
 * it works on. A node that asks the gateway in turn, and hands on the `traceparent` that it was asked with, has told its parent as well:
 * the attempt. For that the stages of the last requests and attempts are remembered. A name is only ever counted: it decides nothing.
 */
import type { TenantId } from '../base/units.ts';
import type { TaskStage } from '../core/request/task.ts';
import type { IgnoredWish } from '../ports/metrics-sink.ts';
import type { RequestHead } from './http/head.ts';

/** Requests, and apart from them attempts, whose stage is remembered for those that follow. */
export const REMEMBERED_MAX = 4_096;
const NAME = /^[\w.:/@-]{1,64}$/;

interface Remembered {
  readonly tenant: TenantId;
  readonly name: string;
}

interface Staged {
  readonly tenant: TenantId;
  readonly stage?: TaskStage | undefined;
}

export class Stages {
  readonly #byId: Map<string, Remembered> = new Map();
  /** By trace and span. */
  readonly #byAttempt: Map<string, Remembered> = new Map();

  /** Undefined for a name that is none. A parent that is not known, or another tenant's, is none. */
  read(
    { stage, parent, traceparent }: Pick<RequestHead, 'stage' | 'parent' | 'traceparent'>,
    tenant: TenantId,
    ignored: (wish: IgnoredWish) => void,
  ): TaskStage | undefined {
    if (!NAME.test(stage)) {
      ignored('stage-unreadable');
      return undefined;
    }
    const known = parent === '' ? this.#byAttempt.get(spanOf(traceparent)) : this.#byId.get(parent);
    return { name: ownText(stage), parent: known?.tenant === tenant ? known.name : '' };
  }

  /** A request that tells no stage is nothing to remember. */
  remember(publicId: string, request: Staged): void {
    keep(this.#byId, publicId, request);
  }

  /** `traceparent` is what the attempt's node was told. */
  rememberAttempt(traceparent: string, request: Staged): void {
    keep(this.#byAttempt, spanOf(traceparent), request);
  }
}

function keep(map: Map<string, Remembered>, key: string, { tenant, stage }: Staged): void {
  if (stage === undefined) return;
  map.set(key, { tenant, name: stage.name });
  if (map.size <= REMEMBERED_MAX) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

/** Ids of trace and span, between the version and the flags: these may differ. */
function spanOf(traceparent: string): string {
  return traceparent.slice(3, 52);
}

/** A part of a head's text would hold all of it. */
function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
