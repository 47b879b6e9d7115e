/** What colours, shapes and sizes of the fleet map mean; drawn by what draws the map. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { themeNow } from '../theme.ts';
import { drawMap } from './draw-map.ts';
import { DRAIN_STEPS, SHAPES } from './palette.ts';

const SWATCH_PX = 22;
/** A drain time inside the step before. */
const INSIDE_MS = 0.5;

export function MapLegend(): JSX.Element {
  return (
    <details class="legend" open>
      <summary>What the squares mean</summary>
      <ul aria-label="Colour: time until the node has done what is bound to it">
        {DRAIN_STEPS.map((step, i) => (
          <li key={step.label}>
            <Swatch state="active" drainMs={i === 0 ? 0 : (DRAIN_STEPS[i - 1]?.belowMs ?? 0) + INSIDE_MS} />
            {step.label}
          </li>
        ))}
      </ul>
      <ul aria-label="Shape: state of the node">
        {Object.entries(SHAPES).map(([state, { says }]) => (
          <li key={state}>
            <Swatch state={state} drainMs={2_000} />
            {state} <span class="visually-hidden">({says})</span>
          </li>
        ))}
      </ul>
      <p class="quiet">
        Larger squares are faster nodes. Colour tells how long a node needs for what is bound to it.
      </p>
    </details>
  );
}

function Swatch({ state, drainMs }: { readonly state: string; readonly drainMs: number }): JSX.Element {
  const element = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const draw = (): void => {
      const context = element.current?.getContext('2d');
      if (context === null || context === undefined) return;
      drawMap(context, {
        fleet: { fleet: 0, states: [state], ids: [''], total: 1 },
        rows: [[0, drainMs, 1, 0, 1, 1]],
        layout: { columns: 1, rows: 1, cellPx: SWATCH_PX, heightPx: SWATCH_PX },
        selected: -1,
        theme: themeNow(),
      });
    };
    draw();
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => themed.disconnect();
  }, [state, drainMs]);
  return <canvas ref={element} width={SWATCH_PX} height={SWATCH_PX} class="swatch" aria-hidden="true" />;
}
