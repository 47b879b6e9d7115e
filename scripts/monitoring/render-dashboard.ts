/**
 * The dashboard as Grafana imports it. Plain typed objects: of its model this needs rows, two kinds of panels and a
 * data source that is chosen at import (docs/decisions/0022-monitoring-from-typed-code.md).
 */
import { type Panel, PANEL_ROWS, type PanelRow } from './panels.ts';

const COLUMNS = 24;
const SOURCE = { type: 'prometheus', uid: '${datasource}' } as const;
const SIZES = { stat: { w: 4, h: 4 }, timeseries: { w: 8, h: 8 } } as const;

interface GridPos {
  readonly h: number;
  readonly w: number;
  readonly x: number;
  readonly y: number;
}

interface GrafanaPanel {
  readonly id: number;
  readonly type: 'row' | 'stat' | 'timeseries';
  readonly title: string;
  readonly gridPos: GridPos;
  readonly description?: string;
  readonly datasource?: typeof SOURCE;
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly legendFormat: string;
    readonly datasource: typeof SOURCE;
  }[];
  readonly fieldConfig?: unknown;
  readonly options?: unknown;
  readonly collapsed?: boolean;
  readonly panels?: readonly never[];
}

export interface Dashboard {
  readonly panels: readonly GrafanaPanel[];
  readonly [field: string]: unknown;
}

export function dashboard(): Dashboard {
  return {
    uid: 'spillway',
    title: 'Spillway',
    tags: ['inference', 'spillway'],
    description: 'Written by scripts/write-dashboard.ts; change scripts/monitoring/panels.ts instead.',
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [{ name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus', hide: 0 }],
    },
    annotations: { list: [] },
    panels: laidOut(PANEL_ROWS),
  };
}

/** Rows one below the other, the panels of each from left to right. */
function laidOut(rows: readonly PanelRow[]): readonly GrafanaPanel[] {
  const panels: GrafanaPanel[] = [];
  let y = 0;
  for (const row of rows) {
    const gridPos = { h: 1, w: COLUMNS, x: 0, y };
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      gridPos,
      collapsed: false,
      panels: [],
    });
    y += 1;
    let x = 0;
    let heightMax = 0;
    for (const panel of row.panels) {
      const { w, h } = SIZES[panel.kind];
      if (x + w > COLUMNS) {
        x = 0;
        y += heightMax;
        heightMax = 0;
      }
      panels.push(panelOf(panel, panels.length + 1, { h, w, x, y }));
      x += w;
      heightMax = Math.max(heightMax, h);
    }
    y += heightMax;
  }
  return panels;
}

function panelOf(panel: Panel, id: number, gridPos: GridPos): GrafanaPanel {
  const { kind, title, description, queries } = panel;
  const targets = queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    expr,
    legendFormat: legend,
    datasource: SOURCE,
  }));
  return {
    id,
    type: kind,
    title,
    description,
    gridPos,
    datasource: SOURCE,
    targets,
    fieldConfig: { defaults: fieldsOf(panel), overrides: [] },
    options: kind === 'stat' ? STAT_OPTIONS : SERIES_OPTIONS,
  };
}

const STAT_OPTIONS = {
  reduceOptions: { calcs: ['lastNotNull'], values: false },
  colorMode: 'value',
} as const;
const SERIES_OPTIONS = {
  legend: { displayMode: 'list', placement: 'bottom' },
  tooltip: { mode: 'multi', sort: 'desc' },
} as const;

function fieldsOf({ unit, kind, stacked = false }: Panel): unknown {
  if (kind === 'stat') return { unit };
  const fill = stacked ? { fillOpacity: 40, stacking: { mode: 'normal' } } : { fillOpacity: 8 };
  return { unit, min: 0, custom: { drawStyle: 'line', lineWidth: 1, showPoints: 'never', ...fill } };
}
