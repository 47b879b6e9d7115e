/**
 * The fleet on one canvas: a thousand nodes would be a thousand elements otherwise. Arrow keys, Home and End move the
 * selection, which is told in words beside the map and read aloud; the table below says the same as the map for the
 * selected node and for those that take longest.
 */
import type { JSX } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { count, span } from '../format.ts';
import type { Live } from '../live/live.ts';
import { useLive, useLiveSource } from '../live/use-live.ts';
import { nodeHref } from '../nodes/node-href.ts';
import { NodeLine } from '../nodes/nodes.tsx';
import { themeNow } from '../theme.ts';
import type { Fleet, NodeRow } from '../wire.ts';
import { drawMap } from './draw-map.ts';
import { cellAt, layoutMap, type MapLayout, placeAfterKey } from './map-layout.ts';
import { MapLegend } from './map-legend.tsx';

const SLOWEST_SHOWN = 8;
const MAP_HELP_ID = 'fleet-map-help';

export function FleetMap(): JSX.Element {
  const live = useLiveSource();
  const [selected, select] = useState(-1);
  const canvas = useMapCanvas(live, selected);
  const move = (event: KeyboardEvent): void => {
    const nodes = live.picture?.nodes.rows.length ?? 0;
    const { layout } = canvas;
    const id = live.fleet?.ids[selected];
    if (event.key === 'Enter' && id !== undefined) location.hash = nodeHref(id);
    if (nodes === 0 || layout.current === undefined) return;
    const next = placeAfterKey(event.key, layout.current, { place: Math.max(0, selected), count: nodes });
    if (next === undefined) return;
    event.preventDefault();
    select(selected < 0 ? 0 : next);
  };
  const point = (event: PointerEvent): void => {
    const layout = canvas.layout.current;
    if (layout === undefined) return;
    const place = cellAt(layout, event.offsetX, event.offsetY);
    if (place < (live.picture?.nodes.rows.length ?? 0)) select(place);
  };
  return (
    <section class="panel" aria-labelledby="fleet-heading">
      <h2 id="fleet-heading">Fleet</h2>
      <StateCounts />
      <canvas
        ref={canvas.element}
        class="fleet-map"
        tabIndex={0}
        role="application"
        aria-roledescription="fleet map"
        aria-label="Fleet map"
        aria-describedby={MAP_HELP_ID}
        onKeyDown={move}
        onPointerDown={point}
      />
      <p id={MAP_HELP_ID} class="quiet">
        Each square is a node: arrow keys, Home and End move the selection, Enter leads to the node.
      </p>
      <Selected place={selected} />
      <MapLegend />
      <SlowestNodes selected={selected} />
    </section>
  );
}

interface MapCanvas {
  readonly element: { current: HTMLCanvasElement | null };
  readonly layout: { current: MapLayout | undefined };
}

/** Draws whenever a picture came, the selection moved, the size or the theme changed; never renders the component. */
function useMapCanvas(live: Live, selected: number): MapCanvas {
  const element = useRef<HTMLCanvasElement>(null);
  const layout = useRef<MapLayout | undefined>(undefined);
  const draw = useCallback(() => {
    if (element.current !== null) layout.current = drawOn(element.current, live, selected);
  }, [live, selected]);
  useEffect(() => {
    draw();
    const stop = live.subscribe(draw);
    const resized = new ResizeObserver(draw);
    if (element.current !== null) resized.observe(element.current);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      stop();
      resized.disconnect();
      themed.disconnect();
    };
  }, [live, draw]);
  return { element, layout };
}

function drawOn(canvas: HTMLCanvasElement, live: Live, selected: number): MapLayout | undefined {
  const { fleet, picture } = live;
  if (fleet === undefined || picture === undefined || picture.nodes.fleet !== fleet.fleet) return undefined;
  const { rows } = picture.nodes;
  const layout = layoutMap(rows.length, canvas.clientWidth);
  const scale = devicePixelRatio;
  const width = Math.round(canvas.clientWidth * scale);
  const height = Math.round(layout.heightPx * scale);
  // Setting a size clears the canvas, even to the same size.
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) {
    canvas.height = height;
    canvas.style.height = `${layout.heightPx}px`;
  }
  const context = canvas.getContext('2d');
  if (context === null) return undefined;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  drawMap(context, { fleet, rows, layout, selected, theme: themeNow() });
  return layout;
}

function StateCounts(): JSX.Element {
  const { picture, fleet } = useLive();
  const counts = Object.entries(picture?.nodes.byState ?? {});
  const total = counts.reduce((sum, [, nodes]) => sum + nodes, 0);
  const shown = picture?.nodes.rows.length ?? 0;
  if (picture === undefined) return <p class="quiet">Waiting for the first picture.</p>;
  if (total === 0) return <p>No node is registered.</p>;
  return (
    <p>
      {count(total)} {total === 1 ? 'node' : 'nodes'}:{' '}
      {counts.map(([state, nodes]) => `${count(nodes)} ${state}`).join(', ')}
      {fleet !== undefined && shown < total ? `; the map shows the first ${count(shown)} by id` : ''}
    </p>
  );
}

function Selected({ place }: { readonly place: number }): JSX.Element {
  const { fleet, picture } = useLive();
  const row = picture?.nodes.rows[place];
  const id = fleet?.ids[place];
  if (row === undefined || id === undefined || fleet === undefined)
    return (
      <p class="selected-node" role="status">
        No node is selected.
      </p>
    );
  return (
    // Read aloud when another node is selected, not at each of its changes.
    <p class="selected-node">
      <span class="visually-hidden" role="status" key={id}>
        {`${id}, ${fleet.states[row[0]]}`}
      </span>
      <a href={nodeHref(id)}>{id}</a>: {describe(row, fleet)}
    </p>
  );
}

function describe(row: NodeRow, fleet: Fleet): string {
  const [state, drainMs, health, inflight, slots, rate] = row;
  return [
    fleet.states[state],
    drainMs > 0 ? `drains in ${span(drainMs)}` : inflight > 0 ? 'due now' : 'idle',
    `${inflight} of ${slots ?? 'unknown'} slots`,
    `health ${health.toFixed(2)}`,
    rate === null ? 'rate unknown' : `rate ${rate}`,
  ].join(', ');
}

function SlowestNodes({ selected }: { readonly selected: number }): JSX.Element | null {
  const { fleet, picture } = useLive();
  const rows = picture?.nodes.rows;
  if (fleet === undefined || rows === undefined || rows.length === 0) return null;
  const places = slowest(rows);
  if (selected >= 0 && selected < rows.length && !places.includes(selected)) places.unshift(selected);
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Nodes that take longest">
      <table>
        <caption>The nodes that take longest to drain{selected < 0 ? '' : ', and the selected one'}</caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col">Drains in</th>
            <th scope="col">In flight</th>
            <th scope="col">Health</th>
            <th scope="col">Rate</th>
          </tr>
        </thead>
        <tbody>
          {/* By rank: other nodes take the same rows of the page. */}
          {places.map((place, rank) => (
            <NodeLine key={rank} id={fleet.ids[place] ?? ''} fleet={fleet} row={rows[place] as NodeRow} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The greatest, in one pass: sorting a thousand rows four times a second would cost more than drawing them. */
function slowest(rows: readonly NodeRow[]): number[] {
  const places: number[] = [];
  rows.forEach((row, place) => {
    const last = places.at(-1);
    if (places.length === SLOWEST_SHOWN && last !== undefined && row[1] <= (rows[last] as NodeRow)[1]) return;
    const at = places.findIndex((other) => (rows[other] as NodeRow)[1] < row[1]);
    places.splice(at < 0 ? places.length : at, 0, place);
    if (places.length > SLOWEST_SHOWN) places.pop();
  });
  return places;
}
