import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Configuration } from './configuration/configuration.tsx';
import { clock } from './format.ts';
import type { Live } from './live/live.ts';
import { startLive } from './live/live.ts';
import { LiveContext, useLive } from './live/use-live.ts';
import { Login } from './login.tsx';
import { Nodes } from './nodes/nodes.tsx';
import { Overview } from './overview/overview.tsx';
import { Requests } from './requests/requests.tsx';
import { type Place, type ScreenName, usePlace } from './route.ts';
import { forgetToken, readToken } from './session.ts';
import { applyThemeChoice, nextThemeChoice, readThemeChoice } from './theme.ts';

const REFUSED = 'The gateway does not take this token any more.';

export function App(): JSX.Element {
  const [isInside, setInside] = useState(readToken() !== '');
  const [why, setWhy] = useState('');
  const leave = (reason: string): void => {
    forgetToken();
    setWhy(reason);
    setInside(false);
  };
  return isInside ? <Inside onLeave={leave} /> : <Login why={why} onEntered={() => setInside(true)} />;
}

function Inside({ onLeave }: { onLeave(reason: string): void }): JSX.Element | null {
  const [live, setLive] = useState<Live>();
  useEffect(() => {
    const started = startLive(() => onLeave(REFUSED));
    setLive(started);
    return () => started.stop();
  }, []);
  const place = usePlace();
  if (live === undefined) return null;
  return (
    <LiveContext.Provider value={live}>
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to content
      </a>
      <Header screen={place.screen} onLeave={() => onLeave('')} />
      <Main place={place} />
    </LiveContext.Provider>
  );
}

/** The address after `#` names the screen, so the link moves the focus by itself. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

const TITLES: Readonly<Record<ScreenName, string>> = {
  overview: 'Overview',
  requests: 'Requests',
  nodes: 'Nodes',
  configuration: 'Configuration',
};

function Header({ screen, onLeave }: { readonly screen: ScreenName; onLeave(): void }): JSX.Element {
  const names = Object.entries(TITLES) as [ScreenName, string][];
  return (
    <header class="top">
      <span class="brand">Spillway</span>
      <nav aria-label="Screens">
        {names.map(([name, title]) => (
          <a key={name} href={`#/${name}`} aria-current={name === screen ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <ConnectionState />
      <ThemeButton />
      <button type="button" onClick={onLeave}>
        Log out
      </button>
    </header>
  );
}

function ConnectionState(): JSX.Element {
  const { connection, picture } = useLive();
  const isStopping = picture !== undefined && !picture.ready;
  const shown = picture === undefined ? '' : `; what is shown is of ${clock(picture.at)}`;
  const text =
    connection.kind === 'retrying'
      ? `Not connected: ${connection.why}${shown}`
      : connection.kind === 'live'
        ? isStopping
          ? 'Live; the gateway is not ready'
          : 'Live'
        : 'Connecting';
  return (
    <span class={`connection ${connection.kind}`} role="status">
      {text}
    </span>
  );
}

function ThemeButton(): JSX.Element {
  const [choice, setChoice] = useState(readThemeChoice);
  const change = (): void => {
    const next = nextThemeChoice(choice);
    applyThemeChoice(next);
    setChoice(next);
  };
  return (
    <button type="button" onClick={change}>
      Theme: {choice}
    </button>
  );
}

/** Another screen takes the focus, so that a screen reader says where one is. */
function Main({ place }: { readonly place: Place }): JSX.Element {
  const element = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${TITLES[place.screen]} · Spillway`;
    if (!isFirst.current) element.current?.focus();
    isFirst.current = false;
  }, [place.screen]);
  return (
    <main id="main" tabIndex={-1} ref={element}>
      <Screen place={place} />
    </main>
  );
}

function Screen({ place }: { readonly place: Place }): JSX.Element {
  switch (place.screen) {
    case 'overview':
      return <Overview />;
    case 'requests':
      return <Requests id={place.rest} />;
    case 'nodes':
      return <Nodes key={place.query.get('find')} find={place.query.get('find') ?? ''} />;
    case 'configuration':
      return <Configuration />;
  }
}
