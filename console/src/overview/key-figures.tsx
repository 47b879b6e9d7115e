/** The line that answers "is it well?" at one look. */
import type { JSX } from 'preact';
import { count, perSecond, span } from '../format.ts';
import { useLive } from '../live/use-live.ts';

export function KeyFigures(): JSX.Element {
  const { picture, rates } = useLive();
  const figures: readonly (readonly [string, string])[] =
    picture === undefined
      ? []
      : [
          ['Waiting', count(picture.queue.depth)],
          ['Oldest waits', span(picture.queue.oldestWaitMs)],
          ['Running', count(picture.queue.running)],
          ['Served', perSecond(rates.served)],
          ['Refused', perSecond(rates.refused)],
          ['Failed', perSecond(rates.failed)],
          ['Retry budget', `${Math.round(picture.retryBudget * 100)} %`],
          ['Ladder stage', String(picture.ladder.stage)],
          ['Signals', String(picture.signals.page + picture.signals.warn)],
        ];
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
