/** A class's weight is its share of the work under contention. Tried first, put in force with a reason. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import type { ChangeOutcome, ConfigPage } from '../wire.ts';
import { outcomeText } from './outcome-text.ts';

interface ClassEntry {
  readonly name: string;
  readonly weight: number;
}

type Wishes = Readonly<Record<string, string>>;

interface ClassWeightsProps {
  readonly page: ConfigPage;
  onChanged(): void;
}

export function ClassWeights({ page, onChanged }: ClassWeightsProps): JSX.Element {
  const classes = classesOf(page.config);
  const [wishes, setWishes] = useState<Wishes>({});
  const [why, setWhy] = useState('');
  const [said, setSaid] = useState('');
  const patch = { classes: patchOf(classes, wishes) };
  const tryIt = async (): Promise<void> => {
    const answer = await call<ChangeOutcome>('/config/dry-run', { method: 'POST', body: { patch } });
    setSaid(answer.kind === 'value' ? `It would change ${outcomeText(answer.value)}` : answer.problem.detail);
  };
  const putInForce = async (event: Event): Promise<void> => {
    event.preventDefault();
    // With the version on the screen: somebody who was faster is not overwritten unseen.
    const body = { patch, why, who: 'console', version: page.version };
    const answer = await call<ChangeOutcome>('/config', { method: 'PUT', body });
    if (answer.kind === 'problem') return setSaid(answer.problem.detail);
    setSaid(`Version ${answer.value.version} is in force: ${outcomeText(answer.value)}`);
    setWishes({});
    setWhy('');
    onChanged();
  };
  return (
    <section class="panel" aria-labelledby="weights-heading">
      <h2 id="weights-heading">Class weights</h2>
      <form onSubmit={putInForce}>
        <div class="line">
          {classes.map(({ name, weight }) => (
            <label key={name}>
              {name}
              <input
                type="number"
                min="0.001"
                step="any"
                required
                value={wishes[name] ?? String(weight)}
                onInput={(event) => setWishes({ ...wishes, [name]: event.currentTarget.value })}
              />
            </label>
          ))}
        </div>
        <div class="line">
          <label for="why">Why</label>
          <input
            id="why"
            autocomplete="off"
            required
            value={why}
            onInput={(event) => setWhy(event.currentTarget.value)}
          />
          <button type="button" onClick={tryIt}>
            Try
          </button>
          <button type="submit" class="primary">
            Put in force
          </button>
        </div>
      </form>
      <p role="status">{said}</p>
    </section>
  );
}

function classesOf(config: ConfigPage['config']): readonly ClassEntry[] {
  const { scheduler } = config as { scheduler?: { classes?: readonly ClassEntry[] } };
  return scheduler?.classes ?? [];
}

/** Only what differs: what the patch does not name stays as it is. */
function patchOf(
  classes: readonly ClassEntry[],
  wishes: Wishes,
): Readonly<Record<string, { readonly weight: number }>> {
  const wanted = classes.map(({ name, weight }) => ({ name, weight, wish: Number(wishes[name] ?? weight) }));
  return Object.fromEntries(
    wanted.filter(({ weight, wish }) => wish !== weight).map(({ name, wish }) => [name, { weight: wish }]),
  );
}
