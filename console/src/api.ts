/** Calls of the admin API. A problem is a value: every screen says what the gateway said. */
import { readToken } from './session.ts';

export const API = '/spillway/v1';

export interface Problem {
  /** 0 when no answer came. */
  readonly status: number;
  readonly detail: string;
}

export type Answer<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'problem'; readonly problem: Problem };

interface CallOptions {
  readonly method?: string;
  readonly body?: unknown;
  readonly token?: string;
  readonly signal?: AbortSignal;
}

export async function call<T>(path: string, options: CallOptions = {}): Promise<Answer<T>> {
  const { method = 'GET', body, token = readToken(), signal } = options;
  try {
    const response = await fetch(`${API}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (response.ok) {
      const value = response.status === 204 ? undefined : await response.json();
      return { kind: 'value', value: value as T };
    }
    return { kind: 'problem', problem: await problemOf(response) };
  } catch (thrown) {
    return { kind: 'problem', problem: { status: 0, detail: unreachable(thrown) } };
  }
}

export async function problemOf(response: Response): Promise<Problem> {
  const { status } = response;
  try {
    const { detail, issues = [] } = (await response.json()) as {
      detail?: string;
      issues?: readonly { path: string; rule: string }[];
    };
    const rules = issues.map(({ path, rule }) => `${path}: ${rule}`);
    return { status, detail: [detail ?? `Status ${status}`, ...rules].join('. ') };
  } catch {
    return { status, detail: `The gateway answered with status ${status}` };
  }
}

function unreachable(thrown: unknown): string {
  return `The gateway could not be reached: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
}
