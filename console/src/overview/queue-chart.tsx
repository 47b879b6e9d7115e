/** How many requests of each class waited, over the last pictures. Lines differ by colour and by dashes. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clock, count, span } from '../format.ts';
import type { Live } from '../live/live.ts';
import { useLive, useLiveSource } from '../live/use-live.ts';
import { type Theme, themeNow } from '../theme.ts';

const HEIGHT_PX = 220;
/** So that the first pictures are not stretched over the whole width. */
const SPAN_S_MIN = 60;

interface LineLook {
  readonly light: string;
  readonly dark: string;
  readonly dash: readonly number[];
  readonly says: string;
}

/** Okabe and Ito's colours that keep their distance on both grounds; after the last the first comes again. */
const LOOKS: readonly LineLook[] = [
  { light: '#b3261e', dark: '#ff9d8a', dash: [], says: 'solid' },
  { light: '#00629b', dark: '#6cc4f5', dash: [8, 4], says: 'dashed' },
  { light: '#6b5300', dark: '#f0c95c', dash: [2, 4], says: 'dotted' },
  { light: '#006b50', dark: '#5fd6b0', dash: [10, 4, 2, 4], says: 'dash and dot' },
];

const lookOf = (index: number): LineLook => LOOKS[index % LOOKS.length] as LineLook;

export function QueueChart(): JSX.Element {
  const live = useLiveSource();
  const element = useChart(live);
  return (
    <section class="panel" aria-labelledby="queue-heading">
      <h2 id="queue-heading">Queues by class</h2>
      <div ref={element} class="chart" aria-hidden="true" />
      <ClassTable />
    </section>
  );
}

function useChart(live: Live): { current: HTMLDivElement | null } {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const container = element.current;
    if (container === null) return;
    let chart: uPlot | undefined;
    let drawnAs = '';
    const draw = (): void => {
      const names = [...live.history.depths.keys()];
      const theme = themeNow();
      const look = `${theme} ${names.join(' ')}`;
      const data = [live.history.times, ...live.history.depths.values()] as unknown as uPlot.AlignedData;
      if (names.length === 0) return;
      if (chart === undefined || look !== drawnAs) {
        chart?.destroy();
        chart = new uPlot(optionsOf(names, theme, container.clientWidth), data, container);
        drawnAs = look;
      } else chart.setData(data);
    };
    draw();
    const stop = live.subscribe(draw);
    const resized = new ResizeObserver(() =>
      chart?.setSize({ width: container.clientWidth, height: HEIGHT_PX }),
    );
    resized.observe(container);
    return () => {
      stop();
      resized.disconnect();
      chart?.destroy();
    };
  }, [live]);
  return element;
}

function optionsOf(names: readonly string[], theme: Theme, width: number): uPlot.Options {
  const ink = theme === 'dark' ? '#c3ccd6' : '#3c4650';
  const grid = { stroke: theme === 'dark' ? '#2c343d' : '#e3e7eb', width: 1 };
  return {
    width,
    height: HEIGHT_PX,
    cursor: { show: false },
    legend: { show: false },
    scales: {
      x: { range: (_chart, from, to) => [Math.min(from, to - SPAN_S_MIN), to] },
      y: { range: (_chart, _low, high) => [0, Math.max(4, high * 1.05)] },
    },
    axes: [
      {
        stroke: ink,
        grid,
        ticks: grid,
        values: (_chart, seconds) => seconds.map((at) => clock(at * 1_000)),
        space: 90,
      },
      { stroke: ink, grid, ticks: grid, size: 56 },
    ],
    series: [
      {},
      ...names.map((name, i): uPlot.Series => {
        const look = lookOf(i);
        return { label: name, stroke: look[theme], dash: [...look.dash], width: 2, points: { show: false } };
      }),
    ],
  };
}

function ClassTable(): JSX.Element | null {
  const { picture, history } = useLive();
  if (picture === undefined) return null;
  const order = [...history.depths.keys()];
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Queues by class now">
      <table>
        <caption>Waiting now</caption>
        <thead>
          <tr>
            <th scope="col">Class</th>
            <th scope="col">Line</th>
            <th scope="col">Requests</th>
            <th scope="col">Work</th>
            <th scope="col">Oldest</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(picture.queue.byClass).map(([name, group]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <LineSample index={Math.max(0, order.indexOf(name))} />
              </td>
              <td class="number">{count(group.depth)}</td>
              <td class="number">{span(group.workMs)}</td>
              <td class="number">{span(group.oldestWaitMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LineSample({ index }: { readonly index: number }): JSX.Element {
  const { dash, says } = lookOf(index);
  return (
    <svg class={`line-sample line-${index % LOOKS.length}`} viewBox="0 0 44 8" role="img" aria-label={says}>
      <line x1="1" y1="4" x2="43" y2="4" stroke-width="2.5" stroke-dasharray={dash.join(' ')} />
    </svg>
  );
}
