/**
 * Stages of workflows, as clients name them: how long their requests wait and run, and which stage asked for which. Names come
 * from outside and are many: both tables are bounded, and what has no row counts as `other`.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { RowTable } from './row-table.ts';

export const STAGES_MAX = 64;
export const STAGE_EDGES_MAX = 256;
/** Not a name that a client can give: it has a space in it. */
export const OTHER_STAGES = 'other stages';

export interface StageRow {
  readonly name: string;
  ended: number;
  waitS: number;
  execS: number;
  lastAt: MonoUs;
}

export interface StageEdge {
  readonly parent: string;
  readonly name: string;
  ended: number;
  lastAt: MonoUs;
}

export interface StagesSample {
  readonly stages: readonly Readonly<StageRow>[];
  readonly edges: readonly Readonly<StageEdge>[];
}

export interface StageEnd {
  readonly name: string;
  /** '' for none. */
  readonly parent: string;
  readonly waitUs: DurationUs;
  readonly execUs: DurationUs;
  readonly at: MonoUs;
}

export class StageTally {
  readonly #other: StageRow = emptyStage(OTHER_STAGES);
  readonly #stages: RowTable<StageRow> = new RowTable(STAGES_MAX, emptyStage);
  readonly #edges: RowTable<StageEdge> = new RowTable(STAGE_EDGES_MAX, (key) => {
    const [parent = '', name = ''] = key.split(' ');
    return { parent, name, ended: 0, lastAt: 0 };
  });

  ended({ name, parent, waitUs, execUs, at }: StageEnd): void {
    const row = this.#stages.use(name, at) ?? this.#other;
    row.ended += 1;
    row.waitS += waitUs / 1_000_000;
    row.execS += execUs / 1_000_000;
    if (parent === '' || row === this.#other) return;
    const edge = this.#edges.use(`${parent} ${name}`, at);
    if (edge !== undefined) edge.ended += 1;
  }

  /** Undefined while no request has told its stage. */
  sample(): StagesSample | undefined {
    const stages = Array.from(this.#stages.values(), (row) => ({ ...row }));
    if (stages.length === 0) return undefined;
    if (this.#other.ended > 0) stages.push({ ...this.#other });
    return { stages, edges: Array.from(this.#edges.values(), (edge) => ({ ...edge })) };
  }
}

function emptyStage(name: string): StageRow {
  return { name, ended: 0, waitS: 0, execS: 0, lastAt: 0 };
}
