/** `spillway nodes`, `queue` and `explain`: a running gateway, for people or as the JSON of its admin plane. */
import type { WireNode } from '../../edge/admin/views.ts';
import type { DecisionView } from '../../runtime/contract.ts';
import { type AdminOptions, askAdmin } from './admin-client.ts';
import { DONE } from './exit.ts';
import { duration, LINE_WIDTH, say, sayJson, table, wrapped } from './output.ts';
import type { Environment } from './state.ts';
import { showing, type WatchOptions } from './terminal/showing.ts';
import { wideNodes } from './wide-nodes.ts';

interface NodePage {
  readonly nodes: readonly WireNode[];
  readonly total: number;
  readonly next: string | null;
}

const PAGES_MAX = 20;

export async function nodes(
  options: WatchOptions & { readonly wide?: boolean },
  environment: Environment,
): Promise<number> {
  return showing(options, async () => {
    const rows = await allNodes(options, environment);
    return {
      document: { nodes: rows },
      text: (width) => nodesText(rows, width, options.wide === true ? wideNodes : nodeTable),
    };
  });
}

type Listing = (rows: readonly WireNode[], width: number) => string;

function nodesText(rows: readonly WireNode[], width: number, listing: Listing): string {
  if (rows.length === 0) return 'No nodes. Add one: spillway serve --node http://gpu-host:8000';
  return listing(rows, width);
}

function nodeTable(rows: readonly WireNode[], width: number): string {
  return table(NODE_HEAD, rows.map(nodeRow), { width, shrinks: NODE_SHRINKS });
}

async function allNodes(options: AdminOptions, environment: Environment): Promise<readonly WireNode[]> {
  const rows: WireNode[] = [];
  let after = '';
  for (let page = 0; page < PAGES_MAX; page++) {
    const path = `/nodes?after=${encodeURIComponent(after)}`;
    const answer = (await askAdmin(path, options, environment)) as NodePage;
    rows.push(...answer.nodes);
    if (answer.next === null) break;
    after = answer.next;
  }
  return rows;
}

const NODE_HEAD = ['NODE', 'STATE', 'HEALTH', 'BUSY', 'DRAIN', 'RATE', 'HARDWARE', 'MODELS', 'URL'];
/** Node, models and URL. */
const NODE_SHRINKS = [0, 7, 8];

function nodeRow(node: WireNode): string[] {
  const models =
    node.models.slice(0, 3).join(',') + (node.models.length > 3 ? `,+${node.models.length - 3}` : '');
  return [
    node.id,
    node.state,
    node.health.toFixed(2),
    `${node.inflight}/${node.slots ?? '?'}`,
    duration(node.drainMs),
    node.rate === null ? '?' : node.rate.toFixed(2),
    node.labels['emulated'] === undefined ? node.hardware || '?' : `${node.hardware} (emulated)`,
    models === '' ? '?' : models,
    node.url,
  ];
}

interface QueueGroup {
  readonly depth: number;
  readonly workMs: number;
  readonly oldestWaitMs: number;
}

interface QueueAnswer extends QueueGroup {
  readonly running: number;
  readonly byClass: Readonly<Record<string, QueueGroup>>;
  readonly byTenant: Readonly<Record<string, QueueGroup>>;
  readonly byModel: Readonly<Record<string, QueueGroup>>;
}

export async function queue(options: WatchOptions, environment: Environment): Promise<number> {
  return showing(options, async () => {
    const document = (await askAdmin('/queue', options, environment)) as QueueAnswer;
    return { document, text: (width) => queueText(document, width) };
  });
}

function queueText(answer: QueueAnswer, width: number): string {
  const rows = [
    ...groupRows('class', answer.byClass),
    ...groupRows('tenant', answer.byTenant),
    ...groupRows('model', answer.byModel),
  ];
  const head = `${answer.depth} waiting, ${answer.running} running`;
  if (rows.length === 0) return head;
  return `${head}\n${table(['', 'NAME', 'WAITING', 'WORK', 'OLDEST'], rows, { width, shrinks: [1] })}`;
}

function groupRows(kind: string, groups: Readonly<Record<string, QueueGroup>>): string[][] {
  return Object.entries(groups).map(([name, group]) => [
    kind,
    name,
    String(group.depth),
    duration(group.workMs),
    duration(group.oldestWaitMs),
  ]);
}

interface Explanation {
  readonly id: string;
  readonly state: string;
  readonly reason: string;
  readonly class: string;
  readonly tenant: string;
  readonly model: string;
  readonly node: string | null;
  readonly attempts: number;
  readonly timeline: Readonly<Record<string, number | null>>;
  readonly workMs: number | null;
  readonly deadlineMs: number | null;
  readonly position: number | null;
  readonly etaMs: number | null;
  /** By which part such estimates were off, in the middle. */
  readonly etaError: { readonly p50: number } | null;
  readonly gates: readonly { readonly gate: string; readonly since: number; readonly detail: string }[];
  readonly nodes: readonly ExplainedNode[];
  readonly nodesTotal: number;
  readonly decisions: readonly DecisionView[];
  readonly unblock: string;
}

interface ExplainedNode {
  readonly id: string;
  readonly eligible: boolean;
  readonly reasons: readonly string[];
  readonly attempt?: number;
  readonly result?: string;
}

export async function explain(id: string, options: AdminOptions, environment: Environment): Promise<number> {
  const answer = (await askAdmin(`/requests/${encodeURIComponent(id)}`, options, environment)) as Explanation;
  if (options.json === true) sayJson(answer);
  else say(explanation(answer));
  return DONE;
}

/** Headings at the left, what they say beside them: readable at 80 columns, longer sentences wrapped. */
export function explanation(answer: Explanation): string {
  const { timeline } = answer;
  const received = timeline['received'] ?? 0;
  const steps = Object.entries(timeline)
    .filter((step): step is [string, number] => step[1] !== null && step[0] !== 'received')
    .map(([name, at]) => `${name} +${duration(at - received)}`);
  const lines = [
    answer.id,
    entry('state', headline(answer)),
    entry('request', `class ${answer.class || 'none yet'}, tenant ${answer.tenant}, model ${answer.model}`),
    ...(answer.workMs === null ? [] : [entry('cost', cost(answer))]),
    entry('received', new Date(received).toISOString()),
    ...(steps.length === 0 ? [] : [entry('timeline', steps.join(', '))]),
  ];
  if (answer.state === 'queued') lines.push(entry('position', String(answer.position ?? '?')));
  const eta = etaLine(answer);
  if (eta !== '')
    lines.push(entry(answer.state === 'queued' || answer.state === 'running' ? 'eta' : 'retry', eta));
  for (const { gate, since, detail } of answer.gates) {
    lines.push(entry('gate', `${gate} since +${duration(since - received)}: ${detail}`));
  }
  for (const node of answer.nodes) lines.push(entry('node', nodeLine(node)));
  const more = answer.nodesTotal - answer.nodes.length;
  if (more > 0)
    lines.push(
      entry('', `and ${more} more: GET /spillway/v1/requests/ID?nodesOffset=${answer.nodes.length}`),
    );
  for (const line of placementLines(answer)) lines.push(line);
  if (answer.unblock !== '') lines.push(entry('unblock', answer.unblock));
  return lines.join('\n');
}

/** Where it was placed and why there: the nodes that placement compared, and how many could not take it. */
function placementLines({ decisions }: Explanation): readonly string[] {
  return decisions.flatMap((decision) => {
    if (decision.kind !== 'placed' && decision.kind !== 'queued') return [];
    const { node, nodes = [], refusals = {} } = decision;
    const compared = nodes.map(({ id, doneMs }) => `${id} ${duration(doneMs)}`).join(', ');
    const refused = Object.entries(refusals).map(([reason, nodeCount]) => `${nodeCount} ${reason}`);
    const others = refused.length === 0 ? '' : `; others: ${refused.join(', ')}`;
    if (decision.kind === 'queued')
      return refused.length === 0 ? [] : [entry('waited', `nodes could not take it: ${refused.join(', ')}`)];
    const best = compared === '' ? '' : `; done soonest on ${compared}`;
    return [entry('placed', `on ${node ?? '?'}${best}${others}`)];
  });
}

function headline({ state, reason, node, attempts }: Explanation): string {
  const where = node === null ? '' : state === 'running' ? ` on ${node}` : `; last on ${node}`;
  const why = reason === '' ? '' : `: ${reason}`;
  const tries = attempts > 1 ? ` (${attempts} attempts)` : '';
  return state === 'served' && node !== null ? `served on ${node}${tries}` : `${state}${why}${where}${tries}`;
}

function cost({ workMs, deadlineMs }: Explanation): string {
  const work = workMs === null ? '?' : duration(workMs);
  return `${work} of work on the reference accelerator, deadline ${deadlineMs === null ? '?' : duration(deadlineMs)}`;
}

function etaLine({ state, etaMs, etaError }: Explanation): string {
  if (etaMs === null || state === 'served' || state === 'degraded') return '';
  if (state !== 'queued' && state !== 'running') return `in about ${duration(etaMs)}`;
  const error = etaError === null ? '' : `, give or take ${Math.round(etaError.p50 * 100)} %`;
  return `done in about ${duration(etaMs)}${error}`;
}

function nodeLine({ id, eligible, reasons, attempt, result }: ExplainedNode): string {
  const why = reasons.join(', ');
  if (attempt === undefined) return `${id}: ${eligible ? 'can take it' : why}`;
  return `${id}: attempt ${attempt} ${result ?? 'ended'}${why === '' ? '' : ` (${why})`}`;
}

const HEADING_WIDTH = 10;

function entry(heading: string, text: string): string {
  return wrapped(text, LINE_WIDTH - HEADING_WIDTH - 2)
    .map((line, i) => `  ${(i === 0 ? heading : '').padEnd(HEADING_WIDTH)}${line}`)
    .join('\n');
}
