/** Plots as SVG text: Observable Plot over a document without a browser. */
import { type PlotOptions, plot } from '@observablehq/plot';
import { parseHTML } from 'linkedom';

const { document } = parseHTML('<!doctype html><html><body></body></html>');

/** Plots with their size in pixels; the page scales them to its columns. */
export function plotSvg(options: PlotOptions, label: string): string {
  const drawn = plot({ ...options, document: document as never, ariaLabel: label }) as unknown as {
    readonly outerHTML: string;
    setAttribute(name: string, value: string): void;
  };
  drawn.setAttribute('role', 'img');
  drawn.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  return drawn.outerHTML;
}
