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
    this.#tenantOf = tenantNames(stream.tenants);
    this.#tenantShares = new Shares(tenantSharesOf(stream.tenants));
    this.#sizes = options.sizes;
    this.#draws = options.draws;
  }

  /** The user whom the source has next; `index` is its number over all streams. */
  draw(source: Source, index: number): UserRecord {
    const draws = this.#draws;
    const { stream } = this;
    const { draw } = source;
    draws.begin(this.#key, draw);
    const ofClass = stream.classes[this.#classes.pick(draws.ratio())] as StreamSpec['classes'][number];
    const tenant = this.#tenantOf(this.#tenantShares.pick(draws.ratio()));
    const isPatient = draws.ratio() < stream.users.patientShare;
    const modelAt = this.#models.next(source.modelBefore, draws);
    const size = source.size ?? this.#sizes(draws);
    const estimate = draws.lognormal(stream.estimateSigma);
    return {
      index,
      stream: this.#position,
      className: ofClass.name,
      tenant,
      model: stream.models[modelAt]?.id as ModelId,
      demand: size.demand,
      workUs: size.workUs,
      deadlineUs: Math.max(ofClass.deadlineUs, size.deadlineUsMin),
      arrivedAt: source.nextAt,
      tries: 0,
      taskId: 0,
      firstByteAt: -1,
      source,
      draw,
      modelAt,
      size,
      estimateUs: Math.max(1, Math.round(size.workUs * estimate)),
      noise: draws.lognormal(stream.serviceSigma),
      isPatient,
      fingerprint: `${stream.name}/${draw}`,
      isOut: false,
      timer: undefined,
    };
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
