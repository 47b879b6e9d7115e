/** The nodes, and what an operator does to them: cordon, uncordon, drain. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import { span } from '../format.ts';
import { Confirm } from '../parts/confirm.tsx';
import { usePolled } from '../parts/use-polled.ts';
import type { NodesPage, WireNode } from '../wire.ts';

const EVERY_MS = 2_000;
/** More rows than anybody reads; the rest is found by name. */
const SHOWN_MAX = 100;
const ASKED_MAX = 10_000;

export function Nodes({ find }: { readonly find: string }): JSX.Element {
  const page = usePolled<NodesPage>(`/nodes?limit=${ASKED_MAX}`, EVERY_MS);
  const [wanted, setWanted] = useState(find);
  const [said, setSaid] = useState('');
  const all = page.value?.nodes ?? [];
  const matching = all.filter((node) => matches(node, wanted));
  return (
    <>
      <h1>Nodes</h1>
      <form class="line" onSubmit={(event) => event.preventDefault()}>
        <label for="find-node">Find by id, state or model</label>
        <input
          id="find-node"
          autocomplete="off"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      </form>
      <p role="status">{said || page.problem}</p>
      {page.value === undefined ? (
        <p class="quiet">Asking the gateway.</p>
      ) : (
        <NodeTable
          nodes={matching.slice(0, SHOWN_MAX)}
          caption={`${Math.min(SHOWN_MAX, matching.length)} of ${matching.length} that match, of ${page.value.total}`}
          onDone={(text) => {
            setSaid(text);
            page.refresh();
          }}
        />
      )}
    </>
  );
}

function matches({ id, state, models }: WireNode, wanted: string): boolean {
  const text = wanted.trim().toLowerCase();
  return text === '' || [id, state, ...models].some((part) => part.toLowerCase().includes(text));
}

interface NodeTableProps {
  readonly nodes: readonly WireNode[];
  readonly caption: string;
  onDone(said: string): void;
}

function NodeTable({ nodes, caption, onDone }: NodeTableProps): JSX.Element {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Nodes">
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col">Drains in</th>
            <th scope="col">In flight</th>
            <th scope="col">Health</th>
            <th scope="col">Rate</th>
            <th scope="col">Hardware</th>
            <th scope="col">Models</th>
            <th scope="col">Change</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node.id}>
              <th scope="row">{node.id}</th>
              <td>
                {node.state}
                {node.ejectedForMs > 0 ? ` for ${span(node.ejectedForMs)}` : ''}
              </td>
              <td class="number">{span(node.drainMs)}</td>
              <td class="number">
                {node.inflight}/{node.slots ?? '?'}
              </td>
              <td class="number">{node.health.toFixed(2)}</td>
              <td class="number">{node.rate?.toPrecision(3) ?? 'unknown'}</td>
              <td>{node.hardware}</td>
              <td>{node.models.join(', ')}</td>
              <td>
                <NodeActions node={node} onDone={onDone} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Action {
  readonly name: string;
  readonly body: Readonly<Record<string, boolean>>;
  readonly means: string;
  readonly done: string;
}

const CORDON: Action = {
  name: 'Cordon',
  body: { cordoned: true },
  means: 'It gets no new request. What runs on it goes on.',
  done: 'is cordoned',
};
const UNCORDON: Action = {
  name: 'Uncordon',
  body: { cordoned: false },
  means: 'It gets requests again.',
  done: 'gets requests again',
};
const DRAIN: Action = {
  name: 'Drain',
  body: { draining: true },
  means: 'It gets no new request, finishes what runs, and is then free to be taken away.',
  done: 'drains',
};
const UNDRAIN: Action = {
  name: 'Stop draining',
  body: { draining: false },
  means: 'It gets requests again.',
  done: 'does not drain any more',
};

function NodeActions({ node, onDone }: { readonly node: WireNode; onDone(said: string): void }): JSX.Element {
  const [asked, setAsked] = useState<Action>();
  const carryOut = async (action: Action): Promise<void> => {
    const answer = await call(`/nodes/${encodeURIComponent(node.id)}`, {
      method: 'PATCH',
      body: action.body,
    });
    onDone(answer.kind === 'value' ? `${node.id} ${action.done}.` : answer.problem.detail);
  };
  const actions = [node.cordoned ? UNCORDON : CORDON, node.draining ? UNDRAIN : DRAIN];
  return (
    <>
      {actions.map((action) => (
        <button
          key={action.name}
          type="button"
          aria-label={`${action.name} ${node.id}`}
          onClick={() => setAsked(action)}
        >
          {action.name}
        </button>
      ))}
      {asked === undefined ? null : (
        <Confirm
          title={`${asked.name} ${node.id}?`}
          action={asked.name}
          onConfirm={() => void carryOut(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>{asked.means}</p>
          <p>
            {node.inflight} {node.inflight === 1 ? 'request runs' : 'requests run'} on it now.
          </p>
        </Confirm>
      )}
    </>
  );
}
