/**
 * Colours that people with any colour vision can tell apart (Okabe and Ito, 2008), and always the same for the same thing.
 */
const OKABE_ITO: readonly string[] = [
  '#D55E00',
  '#0072B2',
  '#999999',
  '#009E73',
  '#CC79A7',
  '#56B4E9',
  '#E69F00',
  '#000000',
];

/** By position, the most important first. */
export function colourOf(index: number): string {
  return OKABE_ITO[index % OKABE_ITO.length] as string;
}

/** How users end. */
export const END_COLOURS: Readonly<Record<string, string>> = Object.freeze({
  served: '#009E73',
  degraded: '#56B4E9',
  late: '#E69F00',
  refused: '#CC79A7',
  failed: '#D55E00',
  'gave-up': '#555555',
});
