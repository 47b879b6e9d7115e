/** Where the cells of the fleet map lie: as large as they can be so that the map keeps its height, in rows. */

const CELL_PX_MAX = 44;
const CELL_PX_MIN = 10;
/** Aimed at; a fleet that does not fit at the least size makes the map taller. */
const HEIGHT_PX = 300;

export interface MapLayout {
  readonly columns: number;
  readonly rows: number;
  readonly cellPx: number;
  readonly heightPx: number;
}

export function layoutMap(count: number, widthPx: number): MapLayout {
  const fitting = Math.floor(Math.sqrt((widthPx * HEIGHT_PX) / Math.max(1, count)));
  const cellPx = Math.max(CELL_PX_MIN, Math.min(CELL_PX_MAX, fitting));
  const columns = Math.max(1, Math.floor(widthPx / cellPx));
  const rows = Math.max(1, Math.ceil(count / columns));
  return { columns, rows, cellPx, heightPx: rows * cellPx };
}

/** The node under a point, or -1. */
export function cellAt({ columns, cellPx }: MapLayout, xPx: number, yPx: number): number {
  const column = Math.floor(xPx / cellPx);
  return column < 0 || column >= columns || yPx < 0 ? -1 : Math.floor(yPx / cellPx) * columns + column;
}

const STEPS: Readonly<Record<string, (layout: MapLayout, place: number, count: number) => number>> = {
  ArrowLeft: (_layout, place) => place - 1,
  ArrowRight: (_layout, place) => place + 1,
  ArrowUp: ({ columns }, place) => (place < columns ? place : place - columns),
  ArrowDown: ({ columns }, place, count) => (place + columns < count ? place + columns : place),
  Home: () => 0,
  End: (_layout, _place, count) => count - 1,
};

/** Where a key leads from a node; undefined for keys that lead nowhere. */
export function placeAfterKey(
  key: string,
  layout: MapLayout,
  { place, count }: { readonly place: number; readonly count: number },
): number | undefined {
  const step = STEPS[key];
  return step === undefined ? undefined : Math.max(0, Math.min(count - 1, step(layout, place, count)));
}
