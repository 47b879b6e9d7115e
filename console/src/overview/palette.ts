/**
 * What the fleet map's colours and shapes mean. Colour is the time until a node has done what is bound to it, in steps
 * of half an order of magnitude, close to the cividis scale (Nuñez, Anderton & Renslow, PLoS ONE 13(7), 2018), which reads
 * the same with and without colour vision: it runs from dark to bright alone. State is never told by colour: each has a
 * shape.
 */
import type { Theme } from '../theme.ts';

export interface DrainStep {
  readonly belowMs: number;
  readonly label: string;
}

export const DRAIN_STEPS: readonly DrainStep[] = [
  { belowMs: 1, label: 'idle' },
  { belowMs: 1_000, label: '< 1 s' },
  { belowMs: 3_000, label: '< 3 s' },
  { belowMs: 10_000, label: '< 10 s' },
  { belowMs: 30_000, label: '< 30 s' },
  { belowMs: Number.POSITIVE_INFINITY, label: '≥ 30 s' },
];

/** An idle node is grey, the busiest one stands out most from the ground. */
const FILLS: Readonly<Record<Theme, readonly string[]>> = {
  light: ['#e1e6eb', '#f3e27d', '#cdbb62', '#948e77', '#575d6d', '#00224e'],
  dark: ['#39424c', '#35456c', '#666970', '#948e77', '#c8b866', '#fee838'],
};

export function drainColours(theme: Theme): readonly string[] {
  return FILLS[theme];
}

/** A node that is later than estimated is not idle: something runs there. */
export function drainStep(drainMs: number, inflight: number): number {
  const step = DRAIN_STEPS.findIndex(({ belowMs }) => drainMs < belowMs);
  return inflight > 0 ? Math.max(1, step) : step;
}

export interface MapColours {
  readonly ground: string;
  readonly outline: string;
  /** Shapes of states, over any colour of the scale. */
  readonly shape: string;
  readonly shapeEdge: string;
  readonly selection: string;
}

const COLOURS: Readonly<Record<Theme, MapColours>> = {
  light: {
    ground: '#ffffff',
    outline: '#8a94a0',
    shape: '#a3001b',
    shapeEdge: '#ffffff',
    selection: '#0050c8',
  },
  dark: {
    ground: '#171c22',
    outline: '#75808c',
    shape: '#ff8d8d',
    shapeEdge: '#171c22',
    selection: '#7cc4ff',
  },
};

export function mapColours(theme: Theme): MapColours {
  return COLOURS[theme];
}

export type Shape = 'full' | 'hollow' | 'stroke' | 'bar' | 'triangle' | 'cross' | 'dot';

export const SHAPES: Readonly<Record<string, { readonly shape: Shape; readonly says: string }>> = {
  active: { shape: 'full', says: 'a full square' },
  unverified: { shape: 'hollow', says: 'a frame' },
  suspect: { shape: 'stroke', says: 'one diagonal stroke' },
  cordoned: { shape: 'bar', says: 'a bar across' },
  draining: { shape: 'triangle', says: 'a triangle pointing down' },
  ejected: { shape: 'cross', says: 'a cross' },
  gone: { shape: 'dot', says: 'a dot' },
};

export function shapeOf(state: string): Shape {
  return SHAPES[state]?.shape ?? 'dot';
}
