/** What the gateway's detectors found: the finding, its evidence, and what to do. */
import type { JSX } from 'preact';
import { clock } from '../format.ts';
import { usePolled } from '../parts/use-polled.ts';
import type { Signal, SignalsPage } from '../wire.ts';

const EVERY_MS = 2_000;
const NOT_FOUND = 404;

export function SignalsPanel(): JSX.Element {
  const page = usePolled<SignalsPage>('/signals', EVERY_MS);
  return (
    <section class="panel" aria-labelledby="signals-heading">
      <h2 id="signals-heading">Signals</h2>
      {page.status === NOT_FOUND ? (
        <p class="quiet">There are no detectors in this gateway.</p>
      ) : page.value === undefined ? (
        <p class="quiet">{page.problem || 'Asking the gateway.'}</p>
      ) : (
        <Findings page={page.value} />
      )}
    </section>
  );
}

function Findings({ page }: { readonly page: SignalsPage }): JSX.Element {
  const { signals, detectors } = page;
  const blind = detectors.filter(({ state }) => state === 'blind');
  return (
    <>
      {signals.length === 0 ? (
        <p>
          Nothing found; {detectors.length} {detectors.length === 1 ? 'detector looks' : 'detectors look'}.
        </p>
      ) : (
        <ul class="signals">
          {signals.map((signal) => (
            <Finding key={`${signal.signal} ${signal.subject.kind} ${signal.subject.id}`} signal={signal} />
          ))}
        </ul>
      )}
      {blind.length === 0 ? null : (
        <details>
          <summary>{blind.length} cannot see</summary>
          <ul>
            {blind.map(({ signal, why }) => (
              <li key={signal}>
                {signal}: {why}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Finding({ signal }: { readonly signal: Signal }): JSX.Element {
  const { severity, subject, evidence, says, remedy, since, docs } = signal;
  return (
    <li class={`signal ${severity}`}>
      <p>
        <strong>
          {severity === 'page' ? 'Act now' : 'Look'}: {signal.signal}
        </strong>{' '}
        ({subject.kind} {subject.id}, since {clock(since)})
      </p>
      <p>{says}</p>
      <p>
        <strong>What to do:</strong> {remedy}
      </p>
      <details>
        <summary>Evidence</summary>
        <dl>
          {Object.entries(evidence).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{String(value)}</dd>
            </div>
          ))}
        </dl>
        <p class="quiet">
          Its rule: <code>{docs}</code>
        </p>
      </details>
    </li>
  );
}
