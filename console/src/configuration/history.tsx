/** Every configuration that was in force since the start, and the way back to it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call } from '../api.ts';
import { moment } from '../format.ts';
import { Confirm } from '../parts/confirm.tsx';
import { usePolled } from '../parts/use-polled.ts';
import type { ChangeOutcome, ConfigVersion } from '../wire.ts';
import { outcomeText } from './outcome-text.ts';

const EVERY_MS = 5_000;
/** The gateway was started by a program that lets nothing change it. */
const FIXED = 409;
/** Before the first change the file alone was in force. */
const FILE_ALONE = { version: 0, at: 0, who: '', why: 'The file alone', changed: [] };

interface HistoryProps {
  readonly inForce: number | undefined;
  onChanged(): void;
}

export function History({ inForce, onChanged }: HistoryProps): JSX.Element {
  const page = usePolled<{ readonly versions: readonly ConfigVersion[] }>('/config/history', EVERY_MS);
  const [asked, setAsked] = useState<ConfigVersion>();
  const [said, setSaid] = useState('');
  useEffect(page.refresh, [inForce]);
  const rollBack = async ({ version }: ConfigVersion): Promise<void> => {
    const answer = await call<ChangeOutcome>('/config/rollback', {
      method: 'POST',
      body: { version, why: `Back to version ${version}`, who: 'console' },
    });
    setSaid(answer.kind === 'value' ? `Rolled back: ${outcomeText(answer.value)}` : answer.problem.detail);
    if (answer.kind === 'value') onChanged();
  };
  const versions = [...(page.value?.versions ?? []), FILE_ALONE];
  return (
    <section class="panel" aria-labelledby="history-heading">
      <h2 id="history-heading">History</h2>
      {page.status === FIXED ? (
        <p class="quiet">This gateway was started with a configuration that does not change.</p>
      ) : (
        <VersionTable versions={versions} inForce={inForce} onRollBack={setAsked} />
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
  readonly inForce: number | undefined;
  onRollBack(version: ConfigVersion): void;
}

function VersionTable({ versions, inForce, onRollBack }: VersionTableProps): JSX.Element {
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
          {versions.map((row) => (
            <tr key={row.version}>
              <th scope="row">{row.version}</th>
              <td>{row.at === 0 ? '' : moment(row.at)}</td>
              <td>{row.who}</td>
              <td>{row.why}</td>
              <td>{row.changed.map(({ path }) => path).join(', ')}</td>
              <td>
                {row.version === inForce ? (
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
