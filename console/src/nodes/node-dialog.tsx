/** One node: what is known of it, and what an operator does to it, each after it was said what it means. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call } from '../api.ts';
import { span } from '../format.ts';
import { usePolled } from '../parts/use-polled.ts';
import type { WireNode } from '../wire.ts';

const EVERY_MS = 1_000;

interface NodeDialogProps {
  readonly id: string;
  onSaid(text: string): void;
  onClose(): void;
}

/** The browser's own dialog keeps the focus inside and gives it back. */
export function NodeDialog({ id, onSaid, onClose }: NodeDialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const node = usePolled<WireNode>(`/nodes/${encodeURIComponent(id)}`, EVERY_MS);
  useEffect(() => element.current?.showModal(), []);
  const close = (): void => element.current?.close();
  const done = (text: string): void => {
    onSaid(text);
    close();
  };
  return (
    <dialog ref={element} aria-labelledby="node-title" onClose={onClose}>
      <h2 id="node-title" tabIndex={-1} autofocus>
        {id}
      </h2>
      {node.value === undefined ? (
        <p class="quiet">{node.problem || 'Asking the gateway.'}</p>
      ) : (
        <>
          <NodeFacts node={node.value} />
          <NodeActions node={node.value} onDone={done} />
        </>
      )}
      <p class="line">
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </dialog>
  );
}

function NodeFacts({ node }: { readonly node: WireNode }): JSX.Element {
  const ejected = node.ejectedForMs > 0 ? ` for ${span(node.ejectedForMs)}` : '';
  const facts: readonly (readonly [string, string])[] = [
    ['State', `${node.state}${ejected}`],
    ['Drains in', span(node.drainMs)],
    ['In flight', `${node.inflight} of ${node.slots ?? 'unknown'}`],
    ['Health', node.health.toFixed(2)],
    ['Rate', node.rate?.toPrecision(3) ?? 'unknown'],
    ['Hardware', node.hardware],
    ['Address', node.url],
    ['Speaks', node.protocol],
    ['Came by', node.source],
    ['Models', node.models.join(', ')],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
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

interface NodeActionsProps {
  readonly node: WireNode;
  onDone(said: string): void;
}

function NodeActions({ node, onDone }: NodeActionsProps): JSX.Element {
  const [asked, setAsked] = useState<Action>();
  const [problem, setProblem] = useState('');
  const carryOut = async (action: Action): Promise<void> => {
    const path = `/nodes/${encodeURIComponent(node.id)}`;
    const answer = await call(path, { method: 'PATCH', body: action.body });
    if (answer.kind === 'value') onDone(`${node.id} ${action.done}.`);
    else setProblem(answer.problem.detail);
  };
  const actions = [node.cordoned ? UNCORDON : CORDON, node.draining ? UNDRAIN : DRAIN];
  return (
    <>
      <p class="line">
        {actions.map((action) => (
          <button
            key={action.name}
            type="button"
            aria-expanded={asked === action}
            onClick={() => setAsked(action)}
          >
            {action.name}
          </button>
        ))}
      </p>
      {asked === undefined ? null : (
        <div role="group" aria-label={`${asked.name} ${node.id}?`} class="question">
          <p>
            {asked.means} {node.inflight} {node.inflight === 1 ? 'request runs' : 'requests run'} on it now.
          </p>
          <button type="button" class="primary" onClick={() => void carryOut(asked)}>
            Yes, {asked.name.toLowerCase()} {node.id}
          </button>
        </div>
      )}
      <p role="alert" class="problem">
        {problem}
      </p>
    </>
  );
}
