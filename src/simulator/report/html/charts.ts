/**
 * The plots of a report, each for one policy. Policies stand side by side, so every plot of a row has the same scales:
 * they are given, not taken from the data at hand.
 */
import { areaY, axisY, barX, lineY, type PlotOptions, rect, ruleY } from '@observablehq/plot';
import type { NodeSamples, Samples } from '../../measure/samples.ts';
import { colourOf, END_COLOURS } from './palette.ts';
import { plotSvg } from './plot-svg.ts';
import { peak, stride, thinned, timeAxis } from './series.ts';

/** Rows and columns of a heat map: more would be finer than a pixel. */
const HEAT_ROWS_MAX = 60;
const HEAT_COLUMNS_MAX = 100;
/** Waits below this are drawn as this: the scale is logarithmic. */
const WAIT_SECONDS_MIN = 0.01;

/** What all policies of a variant share. */
export interface Scales {
  readonly seconds: number;
  readonly loadMax: number;
  readonly triesMax: number;
  readonly queueMax: number;
  readonly waitSecondsMax: number;
  readonly endsMax: number;
  readonly drainSecondsMax: number;
}

export function scalesOf(all: readonly Samples[]): Scales {
  const perSecond = ({ ends, periodUs }: Samples): readonly number[] =>
    sumsOf(Object.values(ends)).map((sum) => (sum * 1e6) / periodUs);
  return {
    seconds: peak(
      all.map(({ atSeconds }) => atSeconds),
      1,
    ),
    loadMax: peak(
      all.map(({ offeredRatio }) => offeredRatio),
      1,
    ),
    triesMax: peak(
      all.map(({ triesPerSecond }) => triesPerSecond),
      1,
    ),
    queueMax: peak(
      all.map(({ queued }) => sumsOf(Object.values(queued))),
      1,
    ),
    waitSecondsMax:
      peak(
        all.map(({ waitMs }) => waitMs),
        1_000,
      ) / 1_000,
    endsMax: peak(all.map(perSecond), 1),
    drainSecondsMax:
      peak(
        all.flatMap(({ nodes }) => nodes.map(({ drainMs }) => drainMs)),
        1_000,
      ) / 1_000,
  };
}

function sumsOf(lists: readonly (readonly number[])[]): readonly number[] {
  return (lists[0] ?? []).map((_, at) => lists.reduce((sum, list) => sum + (list[at] ?? 0), 0));
}

function frame(scales: Scales, y: PlotOptions['y']): PlotOptions {
  const { label, perSecond } = timeAxis(scales.seconds);
  return {
    width: 420,
    height: 190,
    marginLeft: 56,
    marginBottom: 34,
    style: { fontFamily: 'system-ui, sans-serif', fontSize: '11px', background: 'none' },
    x: { label, domain: [0, scales.seconds * perSecond], labelAnchor: 'center', labelArrow: 'none' },
    y: { labelArrow: 'none', grid: true, nice: true, ...y },
  };
}

interface Point {
  readonly at: number;
  readonly value: number;
  readonly sort: string;
}

interface Drawing {
  readonly scale: number;
  readonly join: 'mean' | 'max';
  readonly scales: Scales;
}

function pointsOf(
  samples: Samples,
  lists: Readonly<Record<string, readonly number[]>>,
  { scale, join, scales }: Drawing,
): readonly Point[] {
  const every = stride(samples.atSeconds.length);
  const { perSecond } = timeAxis(scales.seconds);
  const at = thinned(samples.atSeconds, every, 'last');
  return Object.entries(lists).flatMap(([sort, list]) =>
    thinned(list, every, join).map((value, index) => ({
      at: (at[index] ?? 0) * perSecond,
      value: value * scale,
      sort,
    })),
  );
}

export function loadChart(samples: Samples, scales: Scales): string {
  const points = pointsOf(samples, { offered: samples.offeredRatio }, { scale: 1, join: 'mean', scales });
  return plotSvg(
    {
      ...frame(scales, { label: 'new work / capacity', domain: [0, scales.loadMax] }),
      marks: [
        areaY(points, { x: 'at', y: 'value', fill: '#0072B2', fillOpacity: 0.35 }),
        lineY(points, { x: 'at', y: 'value', stroke: '#0072B2' }),
        ruleY([1], { stroke: '#000', strokeDasharray: '4 3' }),
      ],
    },
    'Offered work over capacity, by time',
  );
}

export function triesChart(samples: Samples, scales: Scales): string {
  const points = pointsOf(samples, { tries: samples.triesPerSecond }, { scale: 1, join: 'mean', scales });
  return plotSvg(
    {
      ...frame(scales, { label: 'requests per second', domain: [0, scales.triesMax] }),
      marks: [lineY(points, { x: 'at', y: 'value', stroke: '#0072B2' }), ruleY([0])],
    },
    'Requests per second with all retries, by time',
  );
}

export function queueChart(samples: Samples, scales: Scales): string {
  const classes = Object.keys(samples.queued);
  return plotSvg(
    {
      ...frame(scales, { label: 'waiting requests', domain: [0, scales.queueMax] }),
      color: { domain: classes, range: classes.map((_, index) => colourOf(index)) },
      marks: [
        areaY(pointsOf(samples, samples.queued, { scale: 1, join: 'max', scales }), {
          x: 'at',
          y: 'value',
          fill: 'sort',
          order: classes,
        }),
        ruleY([0]),
      ],
    },
    'Requests that wait, by class and time',
  );
}

export function waitChart(samples: Samples, scales: Scales): string {
  const points = pointsOf(samples, { wait: samples.waitMs }, { scale: 1 / 1_000, join: 'max', scales });
  // A period in which nobody was dispatched has no wait: the line has a gap there.
  const shown = points.map((point) => ({
    ...point,
    value: point.value === 0 ? Number.NaN : Math.max(WAIT_SECONDS_MIN, point.value),
  }));
  return plotSvg(
    {
      ...frame(scales, {
        label: '95th percentile of waits (s)',
        type: 'log',
        domain: [WAIT_SECONDS_MIN, scales.waitSecondsMax],
        tickFormat: 'g',
        ticks: 5,
      }),
      marks: [lineY(shown, { x: 'at', y: 'value', stroke: '#D55E00' })],
    },
    '95th percentile of waits, by time',
  );
}

export function endsChart(samples: Samples, scales: Scales): string {
  const sorts = Object.keys(END_COLOURS).filter((sort) => samples.ends[sort] !== undefined);
  const scale = 1e6 / samples.periodUs;
  return plotSvg(
    {
      ...frame(scales, { label: 'users per second', domain: [0, scales.endsMax] }),
      color: { domain: sorts, range: sorts.map((sort) => END_COLOURS[sort] as string) },
      marks: [
        areaY(pointsOf(samples, samples.ends, { scale, join: 'mean', scales }), {
          x: 'at',
          y: 'value',
          fill: 'sort',
          order: sorts,
        }),
        ruleY([0]),
      ],
    },
    'How users ended, per second, by time',
  );
}

/** Part of the time that each node computes. */
export function busyChart(samples: Samples, scales: Scales): string {
  const rows = nodeRows(samples.nodes).map(({ id, busyRatio }): HeatRow => ({ id, values: busyRatio }));
  return heatMap(rows, {
    samples,
    scales,
    max: 1,
    label: 'Part of the time that each node computes, by time',
  });
}

/** Whether the policy says when it believes each node to be done. */
export function tellsDrain({ nodes }: Samples): boolean {
  return nodes.some(({ drainMs }) => drainMs.length > 0);
}

/** What the policy believes that each node still has to do. */
export function drainChart(samples: Samples, scales: Scales): string {
  const rows = nodeRows(samples.nodes).map(({ id, drainMs }): HeatRow => {
    return { id, values: drainMs.map((ms) => ms / 1_000) };
  });
  const max = scales.drainSecondsMax;
  return heatMap(rows, { samples, scales, max, label: 'Time until each node is done, by time' });
}

interface HeatRow {
  readonly id: string;
  readonly values: readonly number[];
}

interface HeatOptions {
  readonly samples: Samples;
  readonly scales: Scales;
  readonly max: number;
  readonly label: string;
}

/** Height of a row that has its name beside it, in pixels. */
const NAMED_ROW = 11;

function heatMap(rows: readonly HeatRow[], { samples, scales, max, label }: HeatOptions): string {
  const every = stride(samples.atSeconds.length, HEAT_COLUMNS_MAX);
  const { perSecond } = timeAxis(scales.seconds);
  const ends = thinned(samples.atSeconds, every, 'last').map((at) => at * perSecond);
  const cells = rows.flatMap(({ id, values }) =>
    thinned(values, every, 'mean').map((value, at) => {
      return { from: ends[at - 1] ?? 0, until: ends[at] ?? 0, node: id, value };
    }),
  );
  const height = Math.min(NAMED_ROW * rows.length, 260);
  const named = stride(rows.length, height / NAMED_ROW);
  const ids = rows.map(({ id }) => id);
  return plotSvg(
    {
      ...frame(scales, { label: null, grid: false, domain: ids, padding: 0, tickSize: 0 }),
      height: 54 + height,
      marginLeft: 78,
      color: { scheme: 'cividis', type: 'linear', domain: [0, max] },
      marks: [
        barX(cells, {
          x1: 'from',
          x2: 'until',
          y: 'node',
          fill: 'value',
          inset: 0,
          shapeRendering: 'crispEdges',
        }),
        axisY(
          ids.filter((_, at) => at % named === 0),
          { label: null, tickSize: 0 },
        ),
      ],
    },
    label,
  );
}

/** Evenly over the fleet. */
function nodeRows(nodes: readonly NodeSamples[]): readonly NodeSamples[] {
  const every = stride(nodes.length, HEAT_ROWS_MAX);
  return nodes.filter((_, index) => index % every === 0);
}

/** The scale of a heat map, from 0 to `max`. */
export function heatLegend(max: number, label: string): string {
  const steps = 40;
  const cells = Array.from({ length: steps }, (_, at) => ({
    from: (max * at) / steps,
    until: (max * (at + 1)) / steps,
  }));
  return plotSvg(
    {
      width: 360,
      height: 46,
      marginTop: 2,
      marginBottom: 32,
      x: { label, labelArrow: 'none', labelAnchor: 'center', domain: [0, max] },
      color: { scheme: 'cividis', type: 'linear', domain: [0, max] },
      style: { fontFamily: 'system-ui, sans-serif', fontSize: '11px', background: 'none' },
      marks: [rect(cells, { x1: 'from', x2: 'until', fill: 'from', inset: 0 })],
    },
    label,
  );
}
