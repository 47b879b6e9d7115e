/**
 * Why attempts fail, in the words of nodes and connections: what was said is reduced to a pattern, in which words with digits and what stands in quotes
 * are `*`, and patterns that agree in most of their words are one (after Drain: He, Zhu, Zheng, Lyu, ICWS 2017, whose tree here has the levels kind
 * and status, number of words, first word). Thousands of failures become a few causes with a count each.
 *
 * O(patterns of the same kind and length) a note. Patterns are bounded: the one that was not seen for longest makes room for a new one.
 */
import type { MonoUs, NodeId } from '../../base/units.ts';
import type { FailureKind } from '../request/outcome.ts';

export const CAUSES_MAX = 64;
/** Nodes that are told apart in one cause. */
export const CAUSE_NODES_MAX = 64;
/** What is read of a message: a sentence or two. A longer word is an id, a path or bytes. */
const TEXT_MAX = 400;
const WORDS_MAX = 24;
const WORD_MAX = 40;
/** Of the words of two patterns of one length, so many must be equal; Drain's authors take 0.4 to 0.6. */
const SIMILARITY_MIN = 0.6;
const ANY = '*';

export interface Failure {
  readonly nodeId: NodeId;
  readonly failure: FailureKind;
  /** Of the answer; 0 where there was none. */
  readonly status: number;
  /** What the node or the connection said of it; may be empty. */
  readonly says: string;
}

export interface FailureCause {
  /** Stays the same while its pattern gets more general. */
  readonly id: number;
  readonly failure: FailureKind;
  readonly status: number;
  /** The pattern; '' where nothing was said. */
  readonly pattern: string;
  readonly count: number;
  /** The node on which it was seen most, and how often. */
  readonly node: NodeId;
  readonly onNode: number;
  readonly nodes: number;
  readonly firstAt: MonoUs;
  readonly lastAt: MonoUs;
}

interface Cluster {
  readonly id: number;
  readonly failure: FailureKind;
  readonly status: number;
  readonly words: string[];
  readonly byNode: Map<NodeId, number>;
  readonly firstAt: MonoUs;
  count: number;
  lastAt: MonoUs;
}

export class FailureCauses {
  readonly #clusters: Cluster[] = [];
  #nextId = 1;

  note({ nodeId, failure, status, says }: Failure, at: MonoUs): void {
    const words = wordsOf(says);
    const cluster = this.#clusterOf({ failure, status }, words) ?? this.#add({ failure, status }, words, at);
    for (const [index, word] of words.entries())
      if (cluster.words[index] !== word) cluster.words[index] = ANY;
    cluster.count += 1;
    cluster.lastAt = at;
    const known = cluster.byNode.get(nodeId);
    if (known !== undefined || cluster.byNode.size < CAUSE_NODES_MAX)
      cluster.byNode.set(nodeId, (known ?? 0) + 1);
  }

  /** The most frequent first. */
  rows(): readonly FailureCause[] {
    return this.#clusters.map(rowOf).toSorted((a, b) => b.count - a.count || a.id - b.id);
  }

  #clusterOf(of: Pick<Failure, 'failure' | 'status'>, words: readonly string[]): Cluster | undefined {
    let best: Cluster | undefined;
    let most = SIMILARITY_MIN;
    for (const cluster of this.#clusters) {
      if (cluster.failure !== of.failure || cluster.status !== of.status) continue;
      if (cluster.words.length !== words.length || cluster.words[0] !== words[0]) continue;
      const alike = similarity(cluster.words, words);
      if (alike < most) continue;
      best = cluster;
      most = alike;
    }
    return best;
  }

  #add(of: Pick<Failure, 'failure' | 'status'>, words: readonly string[], at: MonoUs): Cluster {
    const { failure, status } = of;
    const id = this.#nextId++;
    const added = {
      id,
      failure,
      status,
      words: [...words],
      byNode: new Map(),
      count: 0,
      firstAt: at,
      lastAt: at,
    };
    if (this.#clusters.length < CAUSES_MAX) this.#clusters.push(added);
    else this.#clusters[this.#stalest()] = added;
    return added;
  }

  #stalest(): number {
    let found = 0;
    for (const [index, { lastAt }] of this.#clusters.entries())
      if (lastAt < (this.#clusters[found] as Cluster).lastAt) found = index;
    return found;
  }
}

/** In a few words: `500: CUDA out of memory *`, `connect: *`, `protocol`. */
export function causeText({
  failure,
  status,
  pattern,
}: Pick<FailureCause, 'failure' | 'status' | 'pattern'>): string {
  const head = status === 0 ? failure : String(status);
  return pattern === '' ? head : `${head}: ${pattern}`;
}

/** The part of words that are equal; two that say nothing are alike. */
function similarity(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0) return 1;
  let equal = 0;
  for (const [index, word] of a.entries()) if (word === ANY || word === b[index]) equal += 1;
  return equal / a.length;
}

/** Printable, without what varies: numbers, ids, addresses, and what is quoted, which may be of the request. */
function wordsOf(says: string): readonly string[] {
  const plain = says
    .slice(0, TEXT_MAX)
    .replaceAll(/\p{C}/gu, ' ')
    .replaceAll(/"[^"]*"?|'[^']*'(?!\w)|`[^`]*`?|“[^”]*”?/gu, ANY);
  const words = plain.split(/\s+/u).filter((word) => word !== '');
  return words.slice(0, WORDS_MAX).map((word) => (/\d/u.test(word) || word.length > WORD_MAX ? ANY : word));
}

function rowOf({ words, byNode, ...row }: Cluster): FailureCause {
  let node = '';
  let onNode = 0;
  for (const [id, count] of byNode) if (count > onNode) [node, onNode] = [id, count];
  return { ...row, pattern: words.join(' '), node, onNode, nodes: byNode.size };
}
