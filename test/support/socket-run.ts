/**
 * A fault over real sockets: a real gateway, emulated nodes and clients, all on 127.0.0.1. Time is real, and the detectors look
 * more often than once a second instead: with a look each tenth of a second their minute is six seconds. Seconds of detectors
 * are looks.
 */
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { SignalName } from '../../src/core/signals/index.ts';
import { call } from '../integration/cli-fixture.ts';
import { createCaseBench } from './case-bench.ts';
import { type Scene, type SceneInput, startScene } from './socket-scene.ts';

type Inject = () => unknown;

export interface SocketCase {
  readonly fault: string;
  readonly raises: SignalName;
  /** Consequences of it that may be raised as well. */
  readonly mayRaise: readonly SignalName[];
  /** The guilty node, tenant, class, gate or cause, as the finding's subject or evidence has to name it. */
  readonly guilty?: string;
  /** Healthy traffic before the fault, and the time in which the signal must be there; in looks. */
  readonly warmLooks: number;
  readonly withinLooks: number;
  readonly scene: SceneInput;
  /** Starts the clients; what it returns brings the fault in. */
  begin(scene: Scene): Inject | Promise<Inject>;
}

export interface SocketFinding {
  readonly signal: SignalName;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly evidence: Readonly<Record<string, number | string>>;
  readonly says: string;
}

export interface FirstFinding extends SocketFinding {
  /** Looks from the fault until it was told; negative before the fault. */
  readonly afterLooks: number;
}

export interface SocketRun {
  /** The first finding of each signal. */
  readonly raised: ReadonlyMap<SignalName, FirstFinding>;
  /** Whether the expected one names what it must, while it was looked at. */
  readonly namesGuilty: boolean;
  /** What the expected detector says of itself at the end. */
  readonly why: string;
}

/** For which a fault is looked at further once its signal is there: what else it raises. */
const AFTER_LOOKS = 30;

export async function runSocketCase(one: SocketCase, sampleMs: number): Promise<SocketRun> {
  const bench = createCaseBench();
  try {
    const scene = await startScene(bench, sampleMs, one.scene);
    const inject = await one.begin(scene);
    const watch = new Watch(one, scene.started, sampleMs);
    await watch.until(() => watch.looks >= one.warmLooks);
    await inject();
    watch.begin();
    await watch.until(() => watch.looks > one.withinLooks || watch.hasSeen(AFTER_LOOKS));
    const why = await whyOf(scene.started, one.raises);
    return { raised: watch.raised, namesGuilty: watch.namesGuilty, why };
  } finally {
    await bench.end();
  }
}

class Watch {
  readonly raised: Map<SignalName, FirstFinding> = new Map();
  namesGuilty = false;
  readonly #case: SocketCase;
  readonly #started: StartedGateway;
  readonly #sampleMs: number;
  #origin = performance.now();
  #isFaulty = false;

  constructor(one: SocketCase, started: StartedGateway, sampleMs: number) {
    this.#case = one;
    this.#started = started;
    this.#sampleMs = sampleMs;
  }

  /** Since the start, or since the fault. */
  get looks(): number {
    return (performance.now() - this.#origin) / this.#sampleMs;
  }

  begin(): void {
    this.#origin = performance.now();
    this.#isFaulty = true;
  }

  /** Whether the signal is there, with who is guilty, for so long. */
  hasSeen(forLooks: number): boolean {
    const found = this.raised.get(this.#case.raises);
    return found !== undefined && this.namesGuilty && this.looks >= found.afterLooks + forLooks;
  }

  async until(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await new Promise((resolve) => setTimeout(resolve, 2 * this.#sampleMs));
      for (const finding of await findings(this.#started)) this.#note(finding);
    }
  }

  #note(finding: SocketFinding): void {
    const { raises, guilty = '' } = this.#case;
    const afterLooks = this.#isFaulty ? this.looks : Math.min(-1, this.looks - this.#case.warmLooks);
    if (!this.raised.has(finding.signal)) this.raised.set(finding.signal, { ...finding, afterLooks });
    if (finding.signal !== raises) return;
    const { subject, evidence } = finding;
    if ([subject.id, ...Object.values(evidence)].some((value) => String(value).includes(guilty)))
      this.namesGuilty = true;
  }
}

export async function findings({ adminUrl, adminToken }: StartedGateway): Promise<readonly SocketFinding[]> {
  const { json } = await call(`${adminUrl}/spillway/v1/signals`, { token: adminToken });
  return json['signals'] as readonly SocketFinding[];
}

interface WireDetector {
  readonly signal: SignalName;
  readonly state: string;
  readonly why: string;
}

async function whyOf({ adminUrl, adminToken }: StartedGateway, signal: SignalName): Promise<string> {
  const { json } = await call(`${adminUrl}/spillway/v1/signals`, { token: adminToken });
  const own = (json['detectors'] as readonly WireDetector[]).find((detector) => detector.signal === signal);
  return own === undefined ? 'There is no such detector' : `${own.state}: ${own.why}`;
}
