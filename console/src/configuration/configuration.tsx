/** What is in force and where each value is from; class weights can be changed, and every change taken back. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { valueText } from '../format.ts';
import { usePolled } from '../parts/use-polled.ts';
import type { ConfigPage } from '../wire.ts';
import { ClassWeights } from './class-weights.tsx';
import { flatValues } from './flat-values.ts';
import { History } from './history.tsx';

const EVERY_MS = 5_000;
const SHOWN_MAX = 200;

export function Configuration(): JSX.Element {
  const page = usePolled<ConfigPage>('/config', EVERY_MS);
  return (
    <>
      <h1>Configuration</h1>
      {page.problem === '' ? null : (
        <p role="alert" class="problem">
          {page.problem}
        </p>
      )}
      {page.value === undefined ? (
        <p class="quiet">Asking the gateway.</p>
      ) : (
        <>
          <ClassWeights page={page.value} onChanged={page.refresh} />
          <History inForce={page.value.version} onChanged={page.refresh} />
          <Values page={page.value} />
        </>
      )}
    </>
  );
}

function Values({ page }: { readonly page: ConfigPage }): JSX.Element {
  const [wanted, setWanted] = useState('');
  const text = wanted.trim().toLowerCase();
  const matching = flatValues(page.config, page.origins).filter(({ path }) =>
    path.toLowerCase().includes(text),
  );
  return (
    <section class="panel" aria-labelledby="values-heading">
      <h2 id="values-heading">What is in force</h2>
      <form class="line" onSubmit={(event) => event.preventDefault()}>
        <label for="find-value">Find by path</label>
        <input
          id="find-value"
          autocomplete="off"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      </form>
      <div class="table-scroll" tabIndex={0} role="group" aria-label="Values in force">
        <table>
          <caption>
            {Math.min(SHOWN_MAX, matching.length)} of {matching.length} values
          </caption>
          <thead>
            <tr>
              <th scope="col">Path</th>
              <th scope="col">Value</th>
              <th scope="col">Origin</th>
            </tr>
          </thead>
          <tbody>
            {matching.slice(0, SHOWN_MAX).map(({ path, value, origin }) => (
              <tr key={path}>
                <th scope="row">
                  <code>{path}</code>
                </th>
                <td>
                  <code>{valueText(value)}</code>
                </td>
                <td>{origin}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
