/** Which requests wait, run or have ended; one opened by its id tells its life. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { clock, span } from '../format.ts';
import { usePolled } from '../parts/use-polled.ts';
import type { ListedRequest } from '../wire.ts';
import { requestHref } from './decision-table.tsx';
import { LastDecisions } from './last-decisions.tsx';
import { RequestLife } from './request-life.tsx';

const EVERY_MS = 2_000;
const SHOWN = 100;
const LISTS = [
  ['queued', 'Waiting'],
  ['running', 'Running'],
  ['ended', 'Ended'],
  ['decisions', 'Decisions'],
] as const;
type ListName = (typeof LISTS)[number][0];

export function Requests({ id }: { readonly id: string }): JSX.Element {
  return id === '' ? <RequestLists /> : <RequestLife id={id} />;
}

function RequestLists(): JSX.Element {
  const [list, setList] = useState<ListName>('queued');
  return (
    <>
      <h1>Requests</h1>
      <OpenById />
      <fieldset class="choices">
        <legend>Show</legend>
        {LISTS.map(([name, title]) => (
          <label key={name}>
            <input type="radio" name="list" checked={name === list} onChange={() => setList(name)} />
            {title}
          </label>
        ))}
      </fieldset>
      {list === 'decisions' ? <LastDecisions /> : <RequestTable key={list} list={list} />}
    </>
  );
}

function OpenById(): JSX.Element {
  const [id, setId] = useState('');
  const open = (event: Event): void => {
    event.preventDefault();
    if (id.trim() !== '') location.hash = requestHref(id.trim());
  };
  return (
    <form class="line" onSubmit={open}>
      <label for="request-id">
        Id of a request (<code>x-spillway-id</code>)
      </label>
      <input
        id="request-id"
        autocomplete="off"
        value={id}
        onInput={(event) => setId(event.currentTarget.value)}
      />
      <button type="submit">Open</button>
    </form>
  );
}

function RequestTable({ list }: { readonly list: Exclude<ListName, 'decisions'> }): JSX.Element {
  const page = usePolled<{ readonly requests: readonly ListedRequest[] }>(
    `/requests?state=${list}&limit=${SHOWN}`,
    EVERY_MS,
  );
  const rows = page.value?.requests ?? [];
  if (page.problem !== '')
    return (
      <p role="alert" class="problem">
        {page.problem}
      </p>
    );
  if (page.value === undefined) return <p class="quiet">Asking the gateway.</p>;
  if (rows.length === 0) return <p>There is none.</p>;
  const isEnded = list === 'ended';
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Requests">
      <table>
        <caption>
          {isEnded ? `The last ${rows.length} that ended` : `The ${rows.length} that came first`}
        </caption>
        <thead>
          <tr>
            <th scope="col">Request</th>
            <th scope="col">{isEnded ? 'Came to' : 'Since'}</th>
            <th scope="col">Class</th>
            <th scope="col">Tenant</th>
            <th scope="col">Model</th>
            <th scope="col">Node</th>
            <th scope="col">{isEnded ? 'Took' : 'Deadline'}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">
                <a href={requestHref(row.id)}>{row.id}</a>
              </th>
              <td>
                {isEnded ? `${row.state}${row.reason === '' ? '' : `: ${row.reason}`}` : clock(row.received)}
              </td>
              <td>{row.class}</td>
              <td>{row.tenant}</td>
              <td>{row.model}</td>
              <td>{row.node ?? ''}</td>
              <td class="number">
                {isEnded ? tookOf(row) : row.deadlineMs === null ? '' : span(row.deadlineMs)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function tookOf({ received, done }: ListedRequest): string {
  return done === null ? '' : span(done - received);
}
