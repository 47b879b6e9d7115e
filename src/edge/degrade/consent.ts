/** `x-spillway-degrade`: what a client takes instead of the answer that it asked for. */
import type { DegradeConsent } from '../../core/degrade/index.ts';

export const NO_CONSENT: DegradeConsent = Object.freeze({
  cache: false,
  model: false,
  quality: false,
  default: false,
});

/** `later` is understood and means nothing yet; `none` takes back what stands beside it. */
const KNOWN: ReadonlySet<string> = new Set(['cache', 'model', 'quality', 'default', 'later', 'none']);

/** A word that nobody knows is told and ignored: who does not say clearly that less will do gets what was asked for. */
export function readConsent(text: string, ignored: (wish: 'degrade-unknown') => void): DegradeConsent {
  const words = new Set(
    text
      .toLowerCase()
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== ''),
  );
  for (const word of words) if (!KNOWN.has(word)) ignored('degrade-unknown');
  if (words.has('none')) return NO_CONSENT;
  return {
    cache: words.has('cache'),
    model: words.has('model'),
    quality: words.has('quality'),
    default: words.has('default'),
  };
}
