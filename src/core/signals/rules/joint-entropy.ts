/**
 * Free memory is little and scattered while what waits is scattered too: no node has room for what is next, and no one line of
 * work could be given nodes to end it.
 *
 *   J = 0.6 M + 0.4 Q, from 0 to 1, as the mean of the last minute
 *   M = full · H(free memory by node)      full  = (mean memory use − 0.8) / 0.2, within 0 and 1
 *   Q = late · H(waiting tasks by line)    late  = (time in which the open nodes could do what waits) / 10 s, at most 1
 *   H(x) = − Σ pᵢ ln pᵢ / ln n, pᵢ = xᵢ / Σ x   (Shannon 1948, over its maximum); a line is a class and a model
 *
 * An even spread has the highest entropy, and an idle fleet is spread evenly: entropy alone is highest where all is well. So each
 * entropy counts only as far as there is little left to spread, or much that waits.
 */
import { drainS } from './since.ts';
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { Sample } from '../sample.ts';
import { mean, normalizedEntropy, percent, told } from '../statistics.ts';

const WINDOW_S = 60;
const MEMORY_WEIGHT = 0.6;
const QUEUE_WEIGHT = 0.4;
const WATCH = 0.3;
const ACT = 0.7;
const FULL_FROM = 0.8;
const LATE_S = 10;
const NODES_MIN = 2;
const KNOWN_MIN = 0.5;

export const jointEntropy: Rule = {
  signal: 'joint-entropy',
  thresholds: {
    watch: { value: WATCH, unit: 'of 1: told as a warning' },
    act: { value: ACT, unit: 'of 1: told as a page' },
    memoryWeight: { value: MEMORY_WEIGHT, unit: 'of the sum' },
    queueWeight: { value: QUEUE_WEIGHT, unit: 'of the sum' },
    fullFrom: { value: FULL_FROM, unit: 'ratio of the memory that engines have for requests' },
    late: { value: LATE_S, unit: 's until all that waits could be done' },
    nodesMin: { value: NODES_MIN, unit: 'nodes' },
    knownMin: { value: KNOWN_MIN, unit: 'ratio of open nodes that tell their memory' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 5,
  leaveSamples: 30,
  remedy:
    'Between the bands, watch: see which engines are full and which lines wait. Above the upper one, act: take no long contexts, drain and restart the fullest engines one after another, and give nodes to fewer models each.',
  look,
};

interface Parts {
  readonly joint: number;
  readonly memory: number;
  readonly queue: number;
  readonly use: number;
}

function look(past: Past): Look {
  if (past.ago(WINDOW_S) === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
  const samples = past.every10(WINDOW_S);
  const parts = samples.map(partsOf).filter((known) => known !== undefined);
  if (parts.length < samples.length)
    return {
      kind: 'blind',
      why: `Less than ${percent(KNOWN_MIN)} of the open nodes, or fewer than ${NODES_MIN}, told their memory for ${WINDOW_S} s`,
    };
  const joint = mean(parts.map((part) => part.joint));
  if (joint < WATCH) return { kind: 'seen', suspicions: [] };
  return { kind: 'seen', suspicions: [suspicionOf(joint, parts, past.now)] };
}

/** Undefined where too few nodes tell their memory. */
function partsOf(sample: Sample): Parts | undefined {
  const open = sample.nodes.filter(({ isOpen }) => isOpen);
  const uses = open.flatMap(({ memoryUse }) => memoryUse ?? []);
  if (uses.length < NODES_MIN || uses.length < KNOWN_MIN * open.length) return undefined;
  const use = mean(uses);
  const full = within01((use - FULL_FROM) / (1 - FULL_FROM));
  const late = within01(drainS(sample) / LATE_S);
  // Where nothing is free at all, it is as scattered as it can be.
  const memory = full * (use >= 1 ? 1 : normalizedEntropy(uses.map((used) => 1 - used)));
  const queue = late * normalizedEntropy(sample.waiting.map(({ depth }) => depth));
  return { joint: MEMORY_WEIGHT * memory + QUEUE_WEIGHT * queue, memory, queue, use };
}

function within01(value: number): number {
  return Math.min(1, Math.max(0, value));
}

function suspicionOf(joint: number, parts: readonly Parts[], now: Sample): Suspicion {
  const memory = mean(parts.map((part) => part.memory));
  const queue = mean(parts.map((part) => part.queue));
  const use = mean(parts.map((part) => part.use));
  const mustAct = joint > ACT;
  return {
    subject: { kind: 'gateway', id: '' },
    severity: mustAct ? 'page' : 'warn',
    evidence: {
      joint: told(joint),
      band: mustAct ? 'act' : 'watch',
      memory: told(memory),
      queue: told(queue),
      memoryUse: told(use),
      drainS: told(drainS(now)),
      lines: now.waiting.length,
    },
    says: `Memory is ${percent(use)} full and scattered to ${told(memory)} of 1, and what waits to ${told(queue)}: together ${told(joint)}, ${mustAct ? 'act' : 'watch'}`,
  };
}
