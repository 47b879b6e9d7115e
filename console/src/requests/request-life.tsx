/** One request: its life as a timeline, what holds it, which nodes may not take it and why, and what would let it run. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { clock, count, span } from '../format.ts';
import { nodeHref } from '../nodes/node-href.ts';
import { usePolled } from '../parts/use-polled.ts';
import type { RequestPage } from '../wire.ts';
import { DecisionTable } from './decision-table.tsx';

const EVERY_MS = 1_000;
const NODES_SHOWN = 50;

export function RequestLife({ id }: { readonly id: string }): JSX.Element {
  const [offset, setOffset] = useState(0);
  const path = `/requests/${encodeURIComponent(id)}?nodesOffset=${offset}&nodesLimit=${NODES_SHOWN}`;
  const page = usePolled<RequestPage>(path, EVERY_MS);
  return (
    <>
      <p>
        <a href="#/requests">All requests</a>
      </p>
      <h1>
        Request <code>{id}</code>
      </h1>
      {page.problem === '' ? null : (
        <p role="alert" class="problem">
          {page.problem}
        </p>
      )}
      {page.value === undefined ? null : <Life page={page.value} offset={offset} onOffset={setOffset} />}
    </>
  );
}

interface LifeProps {
  readonly page: RequestPage;
  readonly offset: number;
  onOffset(offset: number): void;
}

function Life({ page, offset, onOffset }: LifeProps): JSX.Element {
  return (
    <>
      <section class="panel" aria-labelledby="state-heading">
        <h2 id="state-heading">
          {page.state}
          {page.reason === '' ? '' : `: ${page.reason}`}
        </h2>
        <Facts page={page} />
        <p class="unblock">
          <strong>What would help:</strong> {page.unblock}{' '}
          {page.cure?.nodeId === undefined ? null : (
            <a href={nodeHref(page.cure.nodeId)}>See {page.cure.nodeId}</a>
          )}
        </p>
      </section>
      <Timeline page={page} />
      <Gates page={page} />
      <NodeReasons page={page} offset={offset} onOffset={onOffset} />
      <Decisions page={page} />
    </>
  );
}

function Facts({ page }: { readonly page: RequestPage }): JSX.Element {
  const facts: readonly (readonly [string, string | null])[] = [
    ['Class', page.class],
    ['Tenant', page.tenant],
    ['Model', page.model],
    ['Node', page.node],
    ['Attempts', String(page.attempts)],
    ['Work', page.workMs === null ? null : span(page.workMs)],
    ['Deadline', page.deadlineMs === null ? null : span(page.deadlineMs)],
    ['Ahead of it', page.state !== 'queued' || page.position === null ? null : count(page.position)],
    ['Done in about', page.etaMs === null || page.etaMs === 0 ? null : span(page.etaMs)],
  ];
  return (
    <dl class="figures">
      {facts.map(([name, value]) =>
        value === null || value === '' ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

function isLive({ state }: Pick<RequestPage, 'state'>): boolean {
  return state === 'queued' || state === 'running';
}

const STEPS: readonly (readonly [string, string])[] = [
  ['received', 'Head read'],
  ['admitted', 'Admitted'],
  ['decided', 'Bound to a node'],
  ['sent', 'Sent to the node'],
  ['firstByte', 'First byte'],
  ['done', 'Ended'],
];

interface Step {
  readonly name: string;
  readonly at: number;
}

function stepsOf({ timeline, failures }: RequestPage): readonly Step[] {
  const steps = STEPS.flatMap(([key, name]) => {
    const at = timeline[key];
    return at === null || at === undefined ? [] : [{ name, at }];
  });
  const failed = failures.flatMap(({ node, attempt, failure, at }) =>
    at === null ? [] : [{ name: `Attempt ${attempt} on ${node} failed: ${failure}`, at }],
  );
  return [...steps, ...failed].sort((a, b) => a.at - b.at);
}

function Timeline({ page }: { readonly page: RequestPage }): JSX.Element {
  const steps = stepsOf(page);
  const start = steps[0]?.at ?? 0;
  const end = steps.at(-1)?.at ?? start;
  return (
    <section class="panel" aria-labelledby="life-heading">
      <h2 id="life-heading">Its life</h2>
      <ol class="timeline">
        {steps.map(({ name, at }, i) => (
          <li key={name}>
            <span class="at">{i === 0 ? clock(at) : `+${span(at - start)}`}</span>
            <meter
              class="reach"
              min={0}
              max={Math.max(1, end - start)}
              value={at - start}
              aria-hidden="true"
            />
            <span>{name}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Gates({ page: { gates, state } }: { readonly page: RequestPage }): JSX.Element | null {
  if (gates.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="gates-heading">
      <h2 id="gates-heading">{isLive({ state }) ? 'What holds it' : 'What decided it'}</h2>
      <ul>
        {gates.map(({ gate, since, detail }) => (
          <li key={gate}>
            <strong>{gate}</strong> since {clock(since)}: {detail}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Decisions({ page: { decisions = [] } }: { readonly page: RequestPage }): JSX.Element | null {
  if (decisions.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="decisions-heading">
      <h2 id="decisions-heading">Decisions</h2>
      <DecisionTable decisions={decisions} caption="In their order" />
    </section>
  );
}

function NodeReasons({ page, offset, onOffset }: LifeProps): JSX.Element | null {
  const { nodes, nodesTotal, nodesNextOffset } = page;
  if (nodesTotal === 0) return null;
  return (
    <section class="panel" aria-labelledby="nodes-heading">
      <h2 id="nodes-heading">Nodes</h2>
      <div class="table-scroll" tabIndex={0} role="group" aria-label="Nodes and their reasons">
        <table>
          <caption>
            {offset + 1} to {offset + nodes.length} of {nodesTotal}
          </caption>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">{isLive(page) ? 'May take it' : 'What came of it'}</th>
              <th scope="col">Reasons</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map(({ id, eligible, reasons, attempt, result }, i) => (
              <tr key={`${id} ${i}`}>
                <th scope="row">{id}</th>
                <td>
                  {attempt === undefined ? (eligible ? 'yes' : 'no') : `attempt ${attempt}: ${result ?? ''}`}
                </td>
                <td>{reasons.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {nodesTotal <= NODES_SHOWN ? null : (
        <p class="line">
          <button
            type="button"
            disabled={offset === 0}
            onClick={() => onOffset(Math.max(0, offset - NODES_SHOWN))}
          >
            Before
          </button>
          <button
            type="button"
            disabled={nodesNextOffset === null}
            onClick={() => onOffset(nodesNextOffset ?? offset)}
          >
            Next
          </button>
        </p>
      )}
    </section>
  );
}
