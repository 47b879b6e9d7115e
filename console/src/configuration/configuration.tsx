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
  const [version, setVersion] = useState(0);
  const changed = (): void => {
    page.refresh();
    setVersion((before) => before + 1);
  };
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
          <ClassWeights config={page.value.config} onChanged={changed} />
          <History key={version} onChanged={changed} />
          <Values page={page.value} />
        </>
      )}
    </>
  );
}

function Values({ page }: { readonly page: ConfigPage }): JSX.Element {
  const [wanted, setWanted] = useState('');
  const text = wanted.trim().toLowerCase();
  const matching = flatValues(page.config).filter(({ path }) => path.toLowerCase().includes(text));
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
            {matching.slice(0, SHOWN_MAX).map(({ path, value }) => (
              <tr key={path}>
                <th scope="row">
                  <code>{path}</code>
                </th>
                <td>
                  <code>{valueText(value)}</code>
                </td>
                <td>{originOf(path, page.origins)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The scheduler's part of the configuration is written without its prefix in files. */
function originOf(path: string, origins: ConfigPage['origins']): string {
  const written = path.replace(/^scheduler\./, '').replaceAll(/\[(\d+)\]/g, '.$1');
  return origins[path] ?? origins[written] ?? origins[written.replaceAll(/\.(\d+)/g, '[$1]')] ?? 'default';
}
