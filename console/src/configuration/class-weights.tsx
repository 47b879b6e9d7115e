/** A class's weight is its share of the work under contention. Tried first, put in force with a reason. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import { valueText } from '../format.ts';
import type { Change, ConfigPage } from '../wire.ts';

interface ClassEntry {
  readonly name: string;
  readonly weight: number;
}

interface ClassWeightsProps {
  readonly config: ConfigPage['config'];
  onChanged(): void;
}

interface Outcome {
  readonly version?: number;
  readonly changed?: readonly Change[];
  readonly needsRestart?: readonly string[];
  readonly issues?: readonly { readonly path: string; readonly rule: string }[];
}

export function ClassWeights({ config, onChanged }: ClassWeightsProps): JSX.Element {
  const classes = classesOf(config);
  const [wishes, setWishes] = useState<Readonly<Record<string, string>>>({});
  const [why, setWhy] = useState('');
  const [said, setSaid] = useState('');
  const patch = {
    classes: classes.map((one) => ({ ...one, weight: Number(wishes[one.name] ?? one.weight) })),
  };
  const ask = async (path: string, method: string): Promise<void> => {
    const answer = await call<Outcome>(path, {
      method,
      body: { patch, ...(method === 'PUT' ? { why } : {}) },
    });
    setSaid(answer.kind === 'value' ? outcomeText(answer.value) : answer.problem.detail);
    if (answer.kind === 'value' && method === 'PUT') {
      setWishes({});
      onChanged();
    }
  };
  const putInForce = (event: Event): void => {
    event.preventDefault();
    void ask('/config', 'PUT');
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
            value={why}
            onInput={(event) => setWhy(event.currentTarget.value)}
          />
          <button type="button" onClick={() => void ask('/config/dry-run', 'POST')}>
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

function outcomeText({ version, changed = [], needsRestart = [], issues = [] }: Outcome): string {
  if (issues.length > 0) return issues.map(({ path, rule }) => `${path}: ${rule}`).join('. ');
  const what = changed.map(({ path, from, to }) => `${path} from ${valueText(from)} to ${valueText(to)}`);
  const told = what.length === 0 ? 'Nothing changes' : what.join(', ');
  const restart = needsRestart.length === 0 ? '' : `. Needs a restart: ${needsRestart.join(', ')}`;
  return version === undefined
    ? `It would change: ${told}${restart}`
    : `In force as version ${version}: ${told}${restart}`;
}
