/** The overload ladder: its stage, the evidence that holds it, and what would let it go. */
import type { JSX } from 'preact';
import { clock, span } from '../format.ts';
import { useLive } from '../live/use-live.ts';
import type { Ladder, Trigger } from '../wire.ts';

const STAGES = ['0: nothing held back', '1: memory', '2: queue', '3: missed deadlines'] as const;

export function LadderPanel(): JSX.Element {
  const { picture } = useLive();
  return (
    <section class="panel" aria-labelledby="ladder-heading">
      <h2 id="ladder-heading">Overload ladder</h2>
      {picture === undefined ? (
        <p class="quiet">Waiting for the first picture.</p>
      ) : (
        <Body ladder={picture.ladder} />
      )}
    </section>
  );
}

function Body({ ladder }: { readonly ladder: Ladder }): JSX.Element {
  const { stage, mode, model, since, unblock, override, queue } = ladder;
  return (
    <>
      <ol class="stages" aria-label={`Stage ${stage} of 3`}>
        {STAGES.map((label, i) => (
          <li
            key={label}
            class={i > 0 && i <= stage ? 'stage lit' : 'stage'}
            aria-current={i === stage ? 'step' : undefined}
          >
            {label}
          </li>
        ))}
      </ol>
      <p>
        Stage {stage}
        {mode === 'on' ? '' : ` (the gate is in mode ${mode})`}
        {stage > 0 && model !== null ? ` for ${model}` : ''}
        {stage > 0 && since !== null ? ` since ${clock(since)}` : ''}.{' '}
        {override === null ? '' : `Set by hand by ${override.who}: ${override.why}. `}
        {stage > 0 ? `What lets it go: ${unblock}` : unblock}
      </p>
      {queue === null ? null : (
        <p class="quiet">
          At the last sample {queue.depth} of {queue.depthMax} waited
          {queue.className === '' || queue.drainMs === null
            ? ''
            : `; ${queue.className} drains in ${span(queue.drainMs)}, at most ${span(queue.targetMs)} is let wait`}
          .
        </p>
      )}
      {ladder.triggers.length === 0 ? null : <Triggers triggers={ladder.triggers} />}
    </>
  );
}

function Triggers({ triggers }: { readonly triggers: readonly Trigger[] }): JSX.Element {
  return (
    <table>
      <caption>Evidence</caption>
      <thead>
        <tr>
          <th scope="col">Trigger</th>
          <th scope="col">Value</th>
          <th scope="col">Enters at</th>
          <th scope="col">Leaves below</th>
          <th scope="col">Lit</th>
        </tr>
      </thead>
      <tbody>
        {triggers.map(({ trigger, value, enter, leave, isLit }) => (
          <tr key={trigger}>
            <th scope="row">{trigger}</th>
            <td class="number">{value === null ? 'unknown' : value.toFixed(3)}</td>
            <td class="number">{enter}</td>
            <td class="number">{leave}</td>
            <td>{isLit ? 'yes' : 'no'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
