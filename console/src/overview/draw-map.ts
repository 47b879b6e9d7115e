/** Draws the fleet map: one square per node, its size by speed, its colour by drain time, its shape by state. */
import type { Theme } from '../theme.ts';
import type { Fleet, NodeRow } from '../wire.ts';
import type { MapLayout } from './map-layout.ts';
import { drainColours, drainStep, type MapColours, mapColours, type Shape, shapeOf } from './palette.ts';

/** The slowest node is still seen, the fastest leaves a gap to its neighbours. */
const SIDE_MIN = 0.45;
const SIDE_MAX = 0.88;
/** A node ten times as fast as another has the greatest difference in size. */
const DECADE = 10;

export interface MapScene {
  readonly fleet: Fleet;
  readonly rows: readonly NodeRow[];
  readonly layout: MapLayout;
  /** -1 for none. */
  readonly selected: number;
  readonly theme: Theme;
}

export function drawMap(context: CanvasRenderingContext2D, scene: MapScene): void {
  const { fleet, rows, layout, selected, theme } = scene;
  const { columns, cellPx } = layout;
  const colours = mapColours(theme);
  const fills = drainColours(theme);
  const rateMax = rows.reduce((most, row) => Math.max(most, row?.[5] ?? 0), 0);
  context.fillStyle = colours.ground;
  context.fillRect(0, 0, columns * cellPx, layout.heightPx);
  rows.forEach((row, place) => {
    const x = (place % columns) * cellPx;
    const y = Math.floor(place / columns) * cellPx;
    const sidePx = cellPx * sideOf(row[5], rateMax);
    const shape = shapeOf(fleet.states[row[0]] ?? '');
    const box = { x: x + (cellPx - sidePx) / 2, y: y + (cellPx - sidePx) / 2, sidePx };
    drawNode(context, box, { shape, fill: fills[drainStep(row[1], row[3])] as string, colours });
    if (place === selected) drawSelection(context, { x, y, sidePx: cellPx }, colours);
  });
}

/** By the logarithm of the rate; a node whose rate is unknown is drawn as large as an average one. */
export function sideOf(rate: number | null, rateMax: number): number {
  const middle = (SIDE_MIN + SIDE_MAX) / 2;
  if (rate === null || rate <= 0 || rateMax <= 0) return middle;
  const part = 1 + Math.log(rate / rateMax) / Math.log(DECADE);
  return SIDE_MIN + (SIDE_MAX - SIDE_MIN) * Math.max(0, Math.min(1, part));
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly sidePx: number;
}

interface Look {
  readonly shape: Shape;
  readonly fill: string;
  readonly colours: MapColours;
}

function drawNode(context: CanvasRenderingContext2D, box: Box, { shape, fill, colours }: Look): void {
  const { x, y, sidePx } = box;
  if (shape === 'hollow') {
    context.strokeStyle = colours.outline;
    context.lineWidth = Math.max(1.5, sidePx / 6);
    const inset = context.lineWidth / 2;
    context.strokeRect(x + inset, y + inset, sidePx - 2 * inset, sidePx - 2 * inset);
    return;
  }
  if (shape === 'dot') {
    context.fillStyle = colours.outline;
    context.fillRect(x + sidePx / 3, y + sidePx / 3, sidePx / 3, sidePx / 3);
    return;
  }
  context.fillStyle = fill;
  context.fillRect(x, y, sidePx, sidePx);
  context.strokeStyle = colours.outline;
  context.lineWidth = 0.75;
  context.strokeRect(x, y, sidePx, sidePx);
  if (shape !== 'full') drawMark(context, box, shape, colours);
}

/** Twice, wide and narrow, so that it stands out against every colour of the scale. */
function drawMark(context: CanvasRenderingContext2D, box: Box, shape: Shape, colours: MapColours): void {
  context.lineCap = 'round';
  for (const [colour, width] of [
    [colours.shapeEdge, box.sidePx / 2.6],
    [colours.shape, box.sidePx / 5],
  ] as const) {
    context.strokeStyle = colour;
    context.lineWidth = Math.max(1.5, width);
    context.beginPath();
    markPath(context, box, shape);
    context.stroke();
  }
}

function markPath(context: CanvasRenderingContext2D, { x, y, sidePx }: Box, shape: Shape): void {
  const near = sidePx * 0.2;
  const far = sidePx * 0.8;
  const line = (fromX: number, fromY: number, toX: number, toY: number): void => {
    context.moveTo(x + fromX, y + fromY);
    context.lineTo(x + toX, y + toY);
  };
  if (shape === 'stroke' || shape === 'cross') line(near, far, far, near);
  if (shape === 'cross') line(near, near, far, far);
  if (shape === 'bar') line(near, sidePx / 2, far, sidePx / 2);
  if (shape !== 'triangle') return;
  line(near, near, far, near);
  context.lineTo(x + sidePx / 2, y + far);
  context.closePath();
}

function drawSelection(context: CanvasRenderingContext2D, { x, y, sidePx }: Box, colours: MapColours): void {
  context.strokeStyle = colours.selection;
  context.lineWidth = 3;
  context.strokeRect(x + 1.5, y + 1.5, sidePx - 3, sidePx - 3);
}
