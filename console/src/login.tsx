/** Asks for the admin token, tries it, and keeps it for this tab. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call } from './api.ts';
import { keepToken } from './session.ts';

interface LoginProps {
  readonly why: string;
  onEntered(): void;
}

export function Login({ why, onEntered }: LoginProps): JSX.Element {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState(why);
  const [isAsking, setAsking] = useState(false);
  const enter = async (event: Event): Promise<void> => {
    event.preventDefault();
    setAsking(true);
    const answer = await call('/queue', { token: token.trim() });
    setAsking(false);
    if (answer.kind === 'problem') return setProblem(answer.problem.detail);
    keepToken(token.trim());
    onEntered();
  };
  return (
    <main class="login" id="main" tabIndex={-1}>
      <h1>Spillway</h1>
      <form onSubmit={enter}>
        <label for="token">Admin token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          required
          value={token}
          aria-describedby="token-help"
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <p id="token-help" class="quiet">
          The gateway says at its start in which file it is. It is kept until this tab is closed.
        </p>
        <button type="submit" class="primary" disabled={isAsking}>
          Log in
        </button>
        <p role="alert" class="problem">
          {problem}
        </p>
      </form>
    </main>
  );
}
