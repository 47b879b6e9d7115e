/**
 * What the page may weigh. Whoever scrapes takes the whole of it, each time: a page of several megabytes times out, or is cut
 * by the collector's own limit, just when there is most to see. So each family whose rows grow with names has a part of the
 * page in bytes, and however long the names are, the page keeps its bound.
 *
 * What finds no room is not lost: it counts in a row whose model or tenant is `other`, so that sums stay true, and
 * `spillway_metrics_folded` tells how much of it there is. Counters and histograms keep the rows that came first, since a row that
 * comes and goes would read as a restart; gauges keep those that say most.
 */
import { METRICS, type MetricName } from './catalogue.ts';

/** The whole page. */
export const PAGE_BYTES_MAX = 1_000_000;

/** Of families whose rows grow with configured names. With what is below, and all that does not grow, less than the page. */
const FAMILY_BYTES: Readonly<Partial<Record<MetricName, number>>> = Object.freeze({
  // 200 models of three classes with two or three outcomes each.
  spillway_requests_total: 130_000,
  // Fifteen lines a set: twenty models of three classes.
  spillway_time_to_first_byte_seconds: 90_000,
  spillway_tokens_total: 30_000,
  spillway_queue_depth: 40_000,
  spillway_tenant_queue_depth: 12_000,
  spillway_model_nodes: 12_000,
  // Nineteen lines a class.
  spillway_request_seconds: 18_000,
  spillway_queue_wait_seconds: 18_000,
  spillway_user_first_byte_seconds: 18_000,
  spillway_user_request_seconds: 18_000,
});
const FAMILY_BYTES_DEFAULT = 5_000;

/** All rows of nodes together: a thousand nodes with usual names whose hosts tell of their accelerators. */
export const NODES_BYTES_MAX = 560_000;

/** The rest is for the rows `other`. */
const OWN_SHARE = 7 / 8;
/** Digits of a usual value, and the space and the end of the line. */
const VALUE_BYTES = 10;
/** The same of a node's gauges on the average: of five of ten up to six digits are told, the others are small whole numbers. */
const NODE_VALUE_BYTES = 6;

const NODE_FAMILIES = (Object.keys(METRICS) as MetricName[]).filter((name) => {
  const labels: readonly string[] = METRICS[name].labels;
  return labels[0] === 'node';
});
const NODE_ROWS_BYTES = NODE_FAMILIES.reduce(
  (sum, name) => sum + `${name}{node=""} \n`.length + NODE_VALUE_BYTES,
  ',state="unverified"'.length,
);

export interface FamilyBudget {
  /** Up to here rows of their own are begun, and up to `bytesMax` rows `other`. */
  readonly ownBytesMax: number;
  readonly bytesMax: number;
}

export function budgetOf(name: MetricName): FamilyBudget {
  const bytesMax = FAMILY_BYTES[name] ?? FAMILY_BYTES_DEFAULT;
  return { ownBytesMax: bytesMax * OWN_SHARE, bytesMax };
}

/** A line of the page: the name, its labels, and a value to come. */
export function lineBytes(text: string): number {
  return Buffer.byteLength(text) + VALUE_BYTES;
}

/** What the rows of one node take, if its host tells everything. */
export function nodeBytes(id: string): number {
  return NODE_ROWS_BYTES + NODE_FAMILIES.length * Buffer.byteLength(id);
}

/** What the page does not tell apart, by family: events of counters and histograms, rows of gauges, nodes. */
export type Folds = Map<string, number>;

export function foldsFromNothing(): Folds {
  return new Map([...Object.keys(FAMILY_BYTES), 'nodes'].map((family) => [family, 0]));
}
