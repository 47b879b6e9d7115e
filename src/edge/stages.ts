/**
 * Stages of workflows, as clients tell them: `x-spillway-stage: NAME`, and in `x-spillway-parent` the id of the request whose answer
 * it works on. For that the stages of the last requests are remembered. A name is only ever counted: it decides nothing.
 */
import type { TenantId } from '../base/units.ts';
import type { TaskStage } from '../core/request/task.ts';
import type { IgnoredWish } from '../ports/metrics-sink.ts';
import type { RequestHead } from './http/head.ts';

/** Requests whose stage is remembered for those that follow. */
export const REMEMBERED_MAX = 4_096;
const NAME = /^[\w.:/@-]{1,64}$/;

interface Remembered {
  readonly tenant: TenantId;
  readonly name: string;
}

export class Stages {
  readonly #byId: Map<string, Remembered> = new Map();

  /** Undefined for a name that is none. A parent that is not known, or another tenant's, is none. */
  read(
    { stage, parent }: Pick<RequestHead, 'stage' | 'parent'>,
    tenant: TenantId,
    ignored: (wish: IgnoredWish) => void,
  ): TaskStage | undefined {
    if (!NAME.test(stage)) {
      ignored('stage-unreadable');
      return undefined;
    }
    const known = parent === '' ? undefined : this.#byId.get(parent);
    return { name: ownText(stage), parent: known?.tenant === tenant ? known.name : '' };
  }

  remember(publicId: string, tenant: TenantId, name: string): void {
    this.#byId.set(publicId, { tenant, name });
    if (this.#byId.size <= REMEMBERED_MAX) return;
    for (const oldest of this.#byId.keys()) {
      this.#byId.delete(oldest);
      return;
    }
  }
}

/** A part of a head's text would hold all of it. */
function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
