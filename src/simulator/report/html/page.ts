/** A report as one HTML page that needs nothing else: no script, no network. Plots are inline SVG. */
import type { Samples } from '../../measure/samples.ts';
import type { Verdict } from '../judge.ts';
import type { SimulationResults, VariantRuns } from '../results.ts';
import { reportRows } from '../rows.ts';
import {
  busyChart,
  drainChart,
  endsChart,
  heatLegend,
  loadChart,
  queueChart,
  type Scales,
  scalesOf,
  tellsDrain,
  triesChart,
  waitChart,
} from './charts.ts';
import { colourOf, END_COLOURS } from './palette.ts';
import { verdictCells } from '../verdict-text.ts';

const STYLE = `
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 1500px; margin: 2rem auto; padding: 0 1.5rem; }
h1 { margin-bottom: 0; } h2 { border-top: 1px solid #ccc; padding-top: 1.2rem; margin-top: 2.4rem; } h3 { margin: 1.6rem 0 .2rem; }
p.note { color: #555; margin: .2rem 0 .6rem; max-width: 75ch; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .8rem 0; }
th, td { text-align: right; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #e4e4e4; } th:first-child, td:first-child { text-align: left; }
tbody th { font-weight: normal; } td.text, th.text { text-align: left; }
.missed { color: #b00020; font-weight: 600; }
.row { display: grid; gap: .4rem 1.2rem; overflow-x: auto; } figure { margin: 0; min-width: 300px; } figcaption { font-weight: 600; }
svg { max-width: 100%; height: auto; }
.legend { display: flex; gap: 1.1rem; flex-wrap: wrap; margin: .2rem 0; font-size: 13px; } .legend i { display: inline-block; width: .9em; height: .9em; margin-right: .35em; vertical-align: -.1em; }
`;

export function reportPage(results: SimulationResults, verdicts: readonly Verdict[]): string {
  const { name, about, seeds, seed, variants } = results;
  const title = `${name} · simulated`;
  const runs =
    seeds === 1
      ? `One run for each policy, seed ${seed}.`
      : `${seeds} runs for each policy, seeds ${seed} to ${seed + seeds - 1}: means with 95 % intervals; plots show seed ${seed}.`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(name)}</h1>
<p>${escaped(about)}</p>
<p class="note">${escaped(runs)} Every policy met the same users. The same numbers are in <a href="results.json">results.json</a>.</p>
${barsTable(verdicts)}
${variants.map(variantSection).join('\n')}
</body>
</html>
`;
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function barsTable(verdicts: readonly Verdict[]): string {
  if (verdicts.length === 0) return '';
  const rows = verdicts.map((verdict) => {
    const { state, where, what, found, limits, about } = verdictCells(verdict);
    const cells = [where, what, found, limits, about].map((cell) => `<td class="text">${escaped(cell)}</td>`);
    return `<tr><td class="${verdict.kind}">${state}</td>${cells.join('')}</tr>`;
  });
  const head = ['bar', 'policy', 'figure', 'found', 'asked', 'stands for'];
  return `<h2>Bars</h2>
<table><thead><tr>${head.map((cell) => `<th class="text">${cell}</th>`).join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table>`;
}

function variantSection(variant: VariantRuns): string {
  const title = variant.name === '' ? 'Figures' : variant.name;
  return `<h2>${escaped(title)}</h2>\n${figuresTable(variant)}\n${plotsOf(variant)}`;
}

function figuresTable(variant: VariantRuns): string {
  const head = variant.policies.map(({ name }) => `<th>${escaped(name)}</th>`).join('');
  const rows = reportRows(variant).map(
    ({ label, cells }) =>
      `<tr><th>${escaped(label)}</th>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`,
  );
  return `<table><thead><tr><th></th>${head}</tr></thead>\n<tbody>${rows.join('\n')}</tbody></table>`;
}

interface Sampled {
  readonly name: string;
  readonly samples: Samples;
}

function plotsOf(variant: VariantRuns): string {
  const sampled = variant.policies.flatMap(({ name, samples }): Sampled[] =>
    samples === undefined ? [] : [{ name, samples }],
  );
  const [first] = sampled;
  if (first === undefined) return '';
  const scales = scalesOf(sampled.map(({ samples }) => samples));
  const classes = Object.keys(first.samples.queued).map((name, at): [string, string] => [name, colourOf(at)]);
  const row = (title: string, note: string, chart: (samples: Samples, scales: Scales) => string): string =>
    `<h3>${title}</h3>\n${note}\n${sideBySide(sampled, scales, chart)}`;
  return [
    `<h3>Load</h3>\n${noteOf('Work that new users bring, over what the fleet can do. The dashed line is the capacity. The same for every policy.')}\n${loadChart(first.samples, scales)}`,
    row('Requests', noteOf('All that arrive, retries included.'), triesChart),
    row('Queue', legend(classes), queueChart),
    row('Waits', noteOf('From the first try to the node; the scale is logarithmic.'), waitChart),
    row('Outcomes', legend(Object.entries(END_COLOURS)), endsChart),
    row(
      'Nodes',
      `${noteOf('Each row is a node; at most 60 are shown, evenly over the fleet.')}${heatLegend(1, 'part of the time that it computes')}`,
      busyChart,
    ),
    ...drainOf(sampled, scales),
  ].join('\n');
}

function noteOf(text: string): string {
  return `<p class="note">${escaped(text)}</p>`;
}

/** Of the policies that say when they believe a node to be done. */
function drainOf(sampled: readonly Sampled[], scales: Scales): readonly string[] {
  const told = sampled.filter(({ samples }) => tellsDrain(samples));
  if (told.length === 0) return [];
  const note = noteOf(
    'Time until each node is done with what is bound to it or waits for it, as the policy sees it.',
  );
  const scale = heatLegend(scales.drainSecondsMax, 'seconds until done');
  return [`<h3>Drain</h3>\n${note}${scale}\n${sideBySide(told, scales, drainChart)}`];
}

function legend(entries: readonly (readonly [name: string, colour: string])[]): string {
  const items = entries.map(
    ([name, colour]) => `<span><i style="background:${colour}"></i>${escaped(name)}</span>`,
  );
  return `<div class="legend">${items.join('')}</div>`;
}

function sideBySide(
  sampled: readonly Sampled[],
  scales: Scales,
  chart: (samples: Samples, scales: Scales) => string,
): string {
  const figures = sampled.map(
    ({ name, samples }) =>
      `<figure><figcaption>${escaped(name)}</figcaption>${chart(samples, scales)}</figure>`,
  );
  const columns = `grid-template-columns: repeat(${sampled.length}, minmax(300px, 440px))`;
  return `<div class="row" style="${columns}">${figures.join('\n')}</div>`;
}
