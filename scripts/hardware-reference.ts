/** The hardware catalogue as tables for people. */
import { CATALOGUE, type CatalogueEntry } from '../src/hardware/catalogue.ts';
import type { TextModel } from '../src/hardware/service-time.ts';
import type { Sourced } from '../src/hardware/sourced.ts';

const BEGIN = '<!-- catalogue: begin -->';
const END = '<!-- catalogue: end -->';

export function withHardwareReference(page: string, tables: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('The page must have both marks of the catalogue');
  return `${page.slice(0, begin + BEGIN.length)}\n\n${tables}\n${page.slice(end)}`;
}

export function hardwareReference(): string {
  return [
    section(
      'Pictures',
      'fixed ms | ms per picture',
      ({ images }) => images,
      ({ fixedMs, perImageMs }) => [fixedMs, perImageMs],
    ),
    section('Large language model', TEXT_HEAD, ({ textLarge }) => textLarge, textCells),
    section('Small language model', TEXT_HEAD, ({ textSmall }) => textSmall, textCells),
    section(
      'Embeddings',
      'fixed ms | ms per token',
      ({ embeddings }) => embeddings,
      ({ fixedMs, perTokenMs }) => [fixedMs, perTokenMs],
    ),
  ].join('\n');
}

const TEXT_HEAD = 'step ms (a) | per sequence (b) | per 1,000 tokens of context (c) | prompt, ms per token';

function textCells(model: TextModel): readonly (number | string)[] {
  const { prompt } = model;
  const promptCell =
    prompt === undefined
      ? round(model.prefillMsPerToken)
      : `max(${prompt.floorMs}, ${prompt.fixedMs} + ${prompt.perTokenMs} n + ${prompt.perLongTokenMs} max(0, n − 2048)) in all`;
  return [model.stepMs, model.perSequenceMs, 1_000 * model.perContextTokenMs, promptCell];
}

function section<Model>(
  title: string,
  columns: string,
  rowOf: (entry: CatalogueEntry) => Sourced<Model> | undefined,
  cellsOf: (model: Model) => readonly (number | string)[],
): string {
  const rows = CATALOGUE.flatMap((entry) => {
    const row = rowOf(entry);
    if (row === undefined) return [];
    const cells = cellsOf(row.model).map((value) => (typeof value === 'number' ? round(value) : value));
    const certainty = `± ${Math.round(100 * row.uncertainty)} %`;
    return [`| ${[`\`${entry.name}\``, ...cells, row.derivation, certainty, row.source].join(' | ')} |`];
  });
  const head = `hardware | ${columns} | how | within | source`;
  const rule = head.replaceAll(/[^|]+/g, ' --- ');
  return `### ${title}\n\n| ${head} |\n|${rule}|\n${rows.join('\n')}\n`;
}

/** Three digits that count. */
function round(value: number): string {
  return String(Number(value.toPrecision(value >= 1_000 ? 4 : 3)));
}
