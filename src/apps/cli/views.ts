/** `spillway nodes`, `queue` and `explain`: a running gateway, for people or as the JSON of its admin plane. */
import type { WireNode } from '../../edge/admin/views.ts';
import { type AdminOptions, askAdmin } from './admin-client.ts';
import { DONE } from './exit.ts';
import { duration, printable, say, sayJson, table } from './output.ts';
import type { Environment } from './state.ts';

interface NodePage {
  readonly nodes: readonly WireNode[];
  readonly total: number;
  readonly next: string | null;
}

const PAGES_MAX = 20;

export async function nodes(options: AdminOptions, environment: Environment): Promise<number> {
  const rows: WireNode[] = [];
  let after = '';
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = (await askAdmin(
      `/nodes?after=${encodeURIComponent(after)}`,
      options,
      environment,
    )) as NodePage;
    rows.push(...answer.nodes);
    if (answer.next === null) break;
    after = answer.next;
  }
  if (options.json === true) sayJson({ nodes: rows });
  else if (rows.length === 0) say('No nodes. Add one: spillway serve --node http://gpu-host:8000');
  else say(table(NODE_HEAD, rows.map(nodeRow)));
  return DONE;
}

const NODE_HEAD = ['NODE', 'STATE', 'HEALTH', 'BUSY', 'DRAIN', 'RATE', 'HARDWARE', 'MODELS', 'URL'];

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

export async function queue(options: AdminOptions, environment: Environment): Promise<number> {
  const answer = (await askAdmin('/queue', options, environment)) as QueueAnswer;
  if (options.json === true) {
    sayJson(answer);
    return DONE;
  }
  say(`${answer.depth} waiting, ${answer.running} running`);
  const rows = [
    ...groupRows('class', answer.byClass),
    ...groupRows('tenant', answer.byTenant),
    ...groupRows('model', answer.byModel),
  ];
  if (rows.length > 0) say(table(['', 'NAME', 'WAITING', 'WORK', 'OLDEST'], rows));
  return DONE;
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
  readonly position: number | null;
  readonly etaMs: number | null;
  readonly gates: readonly { readonly gate: string; readonly since: number; readonly detail: string }[];
  readonly nodes: readonly {
    readonly id: string;
    readonly eligible: boolean;
    readonly reasons: readonly string[];
  }[];
  readonly nodesTotal: number;
  readonly unblock: string;
}

export async function explain(id: string, options: AdminOptions, environment: Environment): Promise<number> {
  const answer = (await askAdmin(`/requests/${encodeURIComponent(id)}`, options, environment)) as Explanation;
  if (options.json === true) sayJson(answer);
  else say(explanation(answer));
  return DONE;
}

function explanation(answer: Explanation): string {
  const { timeline } = answer;
  const received = timeline['received'] ?? 0;
  const steps = Object.entries(timeline)
    .filter((step): step is [string, number] => step[1] !== null && step[0] !== 'received')
    .map(([name, at]) => `${name} +${duration(at - received)}`);
  const where = answer.node === null ? '' : ` on ${answer.node}`;
  const lines = [
    `${answer.id}: ${answer.state}${answer.reason === '' ? '' : ` (${answer.reason})`}${where}`,
    `class ${answer.class}, tenant ${answer.tenant}, model ${answer.model}, attempts ${answer.attempts}`,
    `received ${new Date(received).toISOString()}; ${steps.join(', ')}`,
  ];
  if (answer.position !== null)
    lines.push(`position ${answer.position}, expected to start in ${duration(answer.etaMs ?? 0)}`);
  for (const gate of answer.gates) lines.push(`held by ${gate.gate}: ${gate.detail}`);
  for (const node of answer.nodes) {
    lines.push(`  ${node.id}: ${node.eligible ? 'can take it' : node.reasons.join(', ')}`);
  }
  if (answer.nodesTotal > answer.nodes.length)
    lines.push(`  and ${answer.nodesTotal - answer.nodes.length} more nodes`);
  if (answer.unblock !== '') lines.push(`to let it run: ${answer.unblock}`);
  return lines.map(printable).join('\n');
}
