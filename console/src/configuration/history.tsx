/** Every configuration that was in force since the start, and the way back to it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import { moment } from '../format.ts';
import { Confirm } from '../parts/confirm.tsx';
import { usePolled } from '../parts/use-polled.ts';
import type { ConfigVersion } from '../wire.ts';

const EVERY_MS = 5_000;
const NOT_FOUND = 404;

interface HistoryProps {
  onChanged(): void;
}

export function History({ onChanged }: HistoryProps): JSX.Element {
  const page = usePolled<{ readonly versions: readonly ConfigVersion[] }>('/config/history', EVERY_MS);
  const [asked, setAsked] = useState<ConfigVersion>();
  const [said, setSaid] = useState('');
  const rollBack = async ({ version }: ConfigVersion): Promise<void> => {
    const answer = await call('/config/rollback', { method: 'POST', body: { version } });
    setSaid(answer.kind === 'value' ? '' : answer.problem.detail);
    if (answer.kind === 'value') onChanged();
  };
  const versions = (page.value?.versions ?? []).toSorted((a, b) => b.version - a.version);
  return (
    <section class="panel" aria-labelledby="history-heading">
      <h2 id="history-heading">History</h2>
      {page.status === NOT_FOUND ? (
        <p class="quiet">The configuration of this gateway changes with its file alone.</p>
      ) : (
        <VersionTable versions={versions} onRollBack={setAsked} />
      )}
      <p role="status">{said}</p>
      {asked === undefined ? null : (
        <Confirm
          title={`Roll back to version ${asked.version}?`}
          action="Roll back"
          onConfirm={() => void rollBack(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>What was in force then is put in force again, as a new version.</p>
        </Confirm>
      )}
    </section>
  );
}

interface VersionTableProps {
  readonly versions: readonly ConfigVersion[];
  onRollBack(version: ConfigVersion): void;
}

function VersionTable({ versions, onRollBack }: VersionTableProps): JSX.Element {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Versions of the configuration">
      <table>
        <caption>Newest first</caption>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">At</th>
            <th scope="col">Who</th>
            <th scope="col">Why</th>
            <th scope="col">Changed</th>
            <th scope="col">Back to it</th>
          </tr>
        </thead>
        <tbody>
          {versions.map((row, i) => (
            <tr key={row.version}>
              <th scope="row">{row.version}</th>
              <td>{moment(row.at)}</td>
              <td>{row.who}</td>
              <td>{row.why}</td>
              <td>
                {row.changed.map((change) => (typeof change === 'string' ? change : change.path)).join(', ')}
              </td>
              <td>
                {i === 0 ? (
                  'in force'
                ) : (
                  <button
                    type="button"
                    aria-label={`Roll back to version ${row.version}`}
                    onClick={() => onRollBack(row)}
                  >
                    Roll back
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
