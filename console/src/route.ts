/** Which screen is shown: the part of the address after `#`, so that one page is all the gateway has to serve. */
import { useEffect, useState } from 'preact/hooks';

export type ScreenName = 'overview' | 'requests' | 'nodes' | 'configuration';

export interface Place {
  readonly screen: ScreenName;
  /** What follows the screen's name, decoded. */
  readonly rest: string;
  readonly query: URLSearchParams;
}

const SCREENS: readonly ScreenName[] = ['overview', 'requests', 'nodes', 'configuration'];

export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  const [name = '', ...rest] = path.split('/');
  const screen = SCREENS.find((one) => one === name) ?? 'overview';
  return { screen, rest: decoded(rest.join('/')), query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const follow = (): void => setPlace(placeOf(location.hash));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return place;
}
