/**
 * The nodes, from the live picture: a list that asked for all of them again and again would cost the gateway more than
 * serving does. What a picture does not tell is asked for when a node is opened.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { span } from '../format.ts';
import { useLive } from '../live/use-live.ts';
import type { Fleet, NodeRow } from '../wire.ts';
import { NodeDialog } from './node-dialog.tsx';

/** More rows than anybody reads; the rest is found by name or state. */
const SHOWN_MAX = 100;

export function Nodes({ find }: { readonly find: string }): JSX.Element {
  const { fleet, picture } = useLive();
  const [wanted, setWanted] = useState(find);
  const [opened, setOpened] = useState('');
  const [said, setSaid] = useState('');
  const rows = fleet !== undefined && picture?.nodes.fleet === fleet.fleet ? picture.nodes.rows : [];
  const places = fleet === undefined ? [] : matching(fleet, rows, wanted);
  const text = wanted.trim();
  return (
    <>
      <h1>Nodes</h1>
      <form class="line" onSubmit={(event) => event.preventDefault()}>
        <label for="find-node">Find by id or state</label>
        <input
          id="find-node"
          autocomplete="off"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
        {places.length > 0 || text === '' ? null : (
          // The picture of a very large fleet does not have all of its nodes.
          <button type="button" onClick={() => setOpened(text)}>
            Open {text}
          </button>
        )}
      </form>
      <p role="status">{said}</p>
      {fleet === undefined ? (
        <p class="quiet">Waiting for the first picture.</p>
      ) : (
        <NodeTable fleet={fleet} rows={rows} places={places} onOpen={setOpened} />
      )}
      {opened === '' ? null : <NodeDialog id={opened} onSaid={setSaid} onClose={() => setOpened('')} />}
    </>
  );
}

function matching(fleet: Fleet, rows: readonly NodeRow[], wanted: string): readonly number[] {
  const text = wanted.trim().toLowerCase();
  const places = rows.map((_, place) => place);
  if (text === '') return places;
  return places.filter((place) => {
    const state = fleet.states[rows[place]?.[0] ?? -1] ?? '';
    return state === text || (fleet.ids[place] ?? '').toLowerCase().includes(text);
  });
}

interface NodeTableProps {
  readonly fleet: Fleet;
  readonly rows: readonly NodeRow[];
  readonly places: readonly number[];
  onOpen(id: string): void;
}

function NodeTable({ fleet, rows, places, onOpen }: NodeTableProps): JSX.Element {
  const shown = places.slice(0, SHOWN_MAX);
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Nodes">
      <table>
        <caption>
          {shown.length} of {places.length} that match, of {fleet.total}
        </caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col">Drains in</th>
            <th scope="col">In flight</th>
            <th scope="col">Health</th>
            <th scope="col">Rate</th>
            <th scope="col">More</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((place) => (
            <NodeLine
              key={fleet.ids[place]}
              id={fleet.ids[place] ?? ''}
              fleet={fleet}
              row={rows[place] as NodeRow}
              onOpen={onOpen}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface NodeLineProps {
  readonly id: string;
  readonly fleet: Fleet;
  readonly row: NodeRow;
  onOpen?(id: string): void;
}

/** Also for the overview, which opens nothing. */
export function NodeLine({ id, fleet, row, onOpen }: NodeLineProps): JSX.Element {
  const [state, drainMs, health, inflight, slots, rate] = row;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td>{fleet.states[state]}</td>
      <td class="number">{span(drainMs)}</td>
      <td class="number">
        {inflight}/{slots ?? '?'}
      </td>
      <td class="number">{health.toFixed(2)}</td>
      <td class="number">{rate ?? 'unknown'}</td>
      {onOpen === undefined ? null : (
        <td>
          <button type="button" aria-label={`Open ${id}`} onClick={() => onOpen(id)}>
            Open
          </button>
        </td>
      )}
    </tr>
  );
}
