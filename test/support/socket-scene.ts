/** What the faults over real sockets stand on: emulated cards behind a real gateway, and their clients. */
import type { StartedGateway, StartOptions } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import {
  type EmulatedFleet,
  type EmulatedNodeInput,
  type FaultChange,
  seededUniform,
  seedFor,
} from '../../src/emulator/index.ts';
import { call } from '../integration/cli-fixture.ts';
import { type CaseBench, IMAGE_MODEL, imageProfile, type Sent, send, type Wish } from './case-bench.ts';

/** A picture takes about a tenth of a second of a card. */
const SPEEDUP = 12;
/** Without the protection that would end an attempt which hangs, or keep a queue short. */
export const UNPROTECTED = {
  'flow-wait': 'off',
  'retry-shed': 'off',
  ladder: 'off',
  timeouts: 'off',
  preemption: 'off',
} as const;
export const PATIENT: Wish = { model: IMAGE_MODEL, deadlineMs: 60_000 };
/** A node that is taken for broken comes back at once. */
export const EJECTS_SHORTLY = { ejectMs: 100, ejectMsMax: 100 };

type NodeChange = Partial<NonNullable<NonNullable<ConfigInput['nodes']>[number]>>;

export interface Scene {
  readonly bench: CaseBench;
  readonly sampleMs: number;
  readonly fleet: EmulatedFleet;
  readonly started: StartedGateway;
  readonly crowd: Crowd;
}

export interface SceneInput extends ConfigInput {
  readonly emulated: readonly EmulatedNodeInput[];
  readonly noiseSigma?: number;
  /** What its operator says of a node beside its models. */
  readonly node?: (url: string) => NodeChange;
  readonly start?: StartOptions;
}

export function cards(count: number, change: Partial<EmulatedNodeInput> = {}): readonly EmulatedNodeInput[] {
  const { id = 'card', ...rest } = change;
  return Array.from({ length: count }, (_, at) => ({
    id: `${id}-${at}`,
    kind: 'image',
    model: IMAGE_MODEL,
    statedHardware: 'A100',
    trueHardware: 'A100',
    ...rest,
  }));
}

export async function startScene(bench: CaseBench, sampleMs: number, input: SceneInput): Promise<Scene> {
  const { emulated, noiseSigma = 0.2, node = () => ({}), start = {}, ...config } = input;
  const fleet = await bench.fleet({ speedup: SPEEDUP, noiseSigma, nodes: emulated });
  const models = [...new Set(emulated.map(({ model }) => model))];
  const gateway: ConfigInput = {
    nodes: fleet.nodes.map(({ id, url, spec }) => ({
      id,
      url,
      slots: 1,
      hardware: spec.statedHardware,
      models: [{ model: spec.model }],
      ...node(url),
    })),
    models: models.map((id) => ({ id, profile: imageProfile(SPEEDUP) })),
    signals: { sampleMs },
    ...config,
  };
  const started = await bench.gateway(gateway, start);
  return { bench, sampleMs, fleet, started, crowd: new Crowd(bench, started) };
}

/** The same change to some nodes. */
export async function change(
  fleet: EmulatedFleet,
  ids: readonly string[],
  faults: FaultChange,
): Promise<void> {
  await Promise.all(ids.map((id) => fleet.setFaults(id, faults)));
}

export const idsOf = (fleet: EmulatedFleet): readonly string[] => fleet.nodes.map(({ id }) => id);

export async function putLadder({ adminUrl, adminToken }: StartedGateway, body: object): Promise<void> {
  const url = `${adminUrl}/spillway/v1/ladder`;
  const { status } = await call(url, { method: 'PUT', token: adminToken, body: JSON.stringify(body) });
  if (status !== 200) throw new Error(`Could not set the ladder: the gateway answers ${status}`);
}

export async function cordon(
  { adminUrl, adminToken }: StartedGateway,
  id: string,
  cordoned: boolean,
): Promise<void> {
  const url = `${adminUrl}/spillway/v1/nodes/${id}`;
  const { status } = await call(url, {
    method: 'PATCH',
    token: adminToken,
    body: JSON.stringify({ cordoned }),
  });
  if (status !== 200) throw new Error(`Could not cordon ${id}: the gateway answers ${status}`);
}

/** Clients of one gateway, until the end of its bench. */
export class Crowd {
  readonly #bench: CaseBench;
  readonly #client: ReturnType<CaseBench['client']>;
  #isOver = false;

  constructor(bench: CaseBench, { dataUrl }: StartedGateway) {
    this.#bench = bench;
    this.#client = bench.client(dataUrl);
    bench.onEnd(() => {
      this.#isOver = true;
    });
  }

  ask(wish: Wish): Promise<Sent> {
    return send(this.#client, wish);
  }

  /** Users who ask, read the answer and ask again. */
  users(count: number, wish: () => Wish): void {
    this.loop(count, () => this.ask(wish()));
  }

  loop(count: number, turn: (user: number) => Promise<unknown>): void {
    const user = async (nth: number): Promise<void> => {
      while (!this.#isOver) await turn(nth);
    };
    for (let nth = 0; nth < count; nth++)
      user(nth).catch((error: unknown) => {
        // A turn is broken off where all of it ends.
        if (!this.#isOver) throw error;
      });
  }

  async pause(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms).unref());
  }

  /** Requests that come by chance (Poisson), whatever became of those before them; a late timer makes up for it. */
  arrivals(name: string, perS: () => number, wish: () => Wish): void {
    const uniform = seededUniform(seedFor(1, name));
    let dueAt = performance.now();
    let timer: NodeJS.Timeout;
    const next = (): void => {
      while (dueAt <= performance.now()) {
        void this.ask(wish());
        dueAt += (-Math.log(1 - uniform()) / perS()) * 1_000;
      }
      timer = setTimeout(next, Math.max(0, dueAt - performance.now()));
    };
    next();
    this.#bench.onEnd(() => clearTimeout(timer));
  }
}
