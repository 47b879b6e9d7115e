/**
 * The admin token, for as long as this tab is open: kept in `sessionStorage`, which other tabs and later visits do not
 * see, and sent as a header, which no other site can make the browser do. There is no cookie.
 */
const KEY = 'spillway-admin-token';

export function readToken(): string {
  return sessionStorage.getItem(KEY) ?? '';
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(KEY);
}
