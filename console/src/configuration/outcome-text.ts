import { valueText } from '../format.ts';
import type { ChangeOutcome } from '../wire.ts';

const CHANGES_SHOWN = 5;

/** What a change did, in one sentence. */
export function outcomeText({ changed, changedTotal, needsRestart }: ChangeOutcome): string {
  const shown = changed.slice(0, CHANGES_SHOWN);
  const what = shown.map(({ path, from, to }) => `${path} from ${valueText(from)} to ${valueText(to)}`);
  const more = changedTotal - shown.length;
  const told = what.length === 0 ? 'nothing' : what.join(', ') + (more > 0 ? ` and ${more} more` : '');
  return `${told}.${needsRestart.length === 0 ? '' : ` Waits for a restart: ${needsRestart.join(', ')}.`}`;
}
