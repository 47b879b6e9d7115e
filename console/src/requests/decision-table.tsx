/** What the scheduler decided, in words; of a placement, which nodes were compared and how many could not take it. */
import type { JSX } from 'preact';
import { clock, span } from '../format.ts';
import type { Decision } from '../wire.ts';

interface DecisionTableProps {
  readonly decisions: readonly Decision[];
  readonly caption: string;
  /** Left out where all are about one request. */
  readonly hasTask?: boolean;
}

export function DecisionTable({ decisions, caption, hasTask = false }: DecisionTableProps): JSX.Element {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Decisions">
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">At</th>
            <th scope="col">Decision</th>
            {hasTask ? <th scope="col">Request</th> : null}
            <th scope="col">Node</th>
            <th scope="col">Compared</th>
            <th scope="col">Could not take it</th>
          </tr>
        </thead>
        <tbody>
          {decisions.map((row) => (
            <tr key={row.seq}>
              <td class="number">{clock(row.at)}</td>
              <th scope="row">{sayDecision(row)}</th>
              {hasTask ? (
                <td>{row.task === undefined ? '' : <a href={requestHref(row.task)}>{row.task}</a>}</td>
              ) : null}
              <td>{row.node ?? ''}</td>
              <td>{(row.nodes ?? []).map(({ id, doneMs }) => `${id} in ${span(doneMs)}`).join(', ')}</td>
              <td>{sayRefusals(row.refusals)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function requestHref(id: string): string {
  return `#/requests/${encodeURIComponent(id)}`;
}

function sayDecision({ kind, attempt, reason, state, model, stage }: Decision): string {
  const rest = [
    attempt === undefined || attempt === 1 ? '' : `attempt ${attempt}`,
    stage === undefined ? '' : `stage ${stage}`,
    model ?? '',
    state ?? '',
    reason ?? '',
  ].filter((part) => part !== '');
  return rest.length === 0 ? kind : `${kind}: ${rest.join(', ')}`;
}

function sayRefusals(refusals: Decision['refusals']): string {
  return Object.entries(refusals ?? {})
    .map(([reason, nodes]) => `${nodes} ${reason}`)
    .join(', ');
}
