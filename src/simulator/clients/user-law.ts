/**
 * What users of a stream are like: everything that is drawn for one at its arrival, from its number alone. Only the
 * model may depend on another user, the one before it.
 */
import type { ModelId, TenantId } from '../../base/units.ts';
import type { StreamSpec, TenantsSpec } from '../scenario/types.ts';
import { type DrawKey, drawKey, type Draws } from './draws.ts';
import { ModelChain } from './model-chain.ts';
import { Shares } from './shares.ts';
import type { SizeLaw } from './sizes.ts';
import type { Source } from './source.ts';
import type { UserRecord } from './user-record.ts';

export class UserLaw {
  readonly stream: StreamSpec;
  /** For what is drawn each time that a user comes back. */
  readonly returnKey: DrawKey;
  readonly #position: number;
  readonly #key: DrawKey;
  readonly #classes: Shares;
  readonly #models: ModelChain;
  readonly #stages: Shares | undefined;
  readonly #tenantOf: (index: number) => TenantId;
  readonly #tenantShares: Shares;
  readonly #sizes: SizeLaw;
  readonly #draws: Draws;

  constructor(stream: StreamSpec, options: UserLawOptions) {
    this.stream = stream;
    this.returnKey = drawKey(options.seed, `return ${options.name}`);
    this.#position = options.position;
    this.#key = drawKey(options.seed, `user ${options.name}`);
    this.#classes = new Shares(stream.classes.map(({ share }) => share));
    this.#models = new ModelChain(stream);
    this.#stages =
      stream.stages.length === 0 ? undefined : new Shares(stream.stages.map(({ share }) => share));
    this.#tenantOf = tenantNames(stream.tenants);
    this.#tenantShares = new Shares(tenantSharesOf(stream.tenants));
    this.#sizes = options.sizes;
    this.#draws = options.draws;
  }

  /** Draws the user whom the source has next. */
  draw(source: Source, user: UserRecord): void {
    const draws = this.#draws;
    const { stream } = this;
    const { draw } = source;
    draws.begin(this.#key, draw);
    const classAt = this.#classes.pick(draws.ratio());
    const ofClass = stream.classes[classAt] as StreamSpec['classes'][number];
    const tenantAt = this.#tenantShares.pick(draws.ratio());
    user.stream = this.#position;
    user.draw = draw;
    user.arrivedAt = source.nextAt;
    user.className = ofClass.name;
    user.classAt = classAt;
    user.tenant = this.#tenantOf(tenantAt);
    user.tenantAt = tenantAt;
    user.isPatient = draws.ratio() < stream.users.patientShare;
    user.modelAt = this.#models.next(source.modelBefore, draws);
    user.model = stream.models[user.modelAt]?.id as ModelId;
    const size = source.size ?? this.#sizes(draws);
    user.size = size;
    user.demand = size.demand;
    user.workUs = size.workUs;
    user.deadlineUs = Math.max(ofClass.deadlineUs, size.deadlineUsMin);
    const estimate = draws.lognormal(stream.estimateSigma);
    user.estimateUs = Math.max(1, Math.round(size.workUs * estimate));
    user.noise = draws.lognormal(stream.serviceSigma);
    // Last, so that a stream which tells stages is otherwise the same.
    user.stage =
      this.#stages === undefined ? undefined : stream.stages[this.#stages.pick(draws.ratio())]?.stage;
  }
}

interface UserLawOptions {
  readonly position: number;
  /** Of the stream, unique among streams. */
  readonly name: string;
  readonly seed: number;
  readonly sizes: SizeLaw;
  readonly draws: Draws;
}

/** Names are made when they are first asked for: there may be a million. */
function tenantNames(tenants: TenantsSpec): (index: number) => TenantId {
  if (tenants.kind === 'one') return () => tenants.id;
  const names = new Array<TenantId | undefined>(tenants.count).fill(undefined);
  return (index) => (names[index] ??= `${tenants.prefix}-${index + 1}`);
}

/** By Zipf's law: the share of the n-th is as `1 / n^zipf`. */
function tenantSharesOf(tenants: TenantsSpec): readonly number[] {
  if (tenants.kind === 'one') return [1];
  return Array.from({ length: tenants.count }, (_, index) => (index + 1) ** -tenants.zipf);
}
