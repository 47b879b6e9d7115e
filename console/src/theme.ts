/** Light, dark, or as the system is set. The choice is kept on this machine. */
export type ThemeChoice = 'system' | 'light' | 'dark';
export type Theme = 'light' | 'dark';

const KEY = 'spillway-theme';
const CHOICES: readonly ThemeChoice[] = ['system', 'light', 'dark'];
const SYSTEM_DARK = '(prefers-color-scheme: dark)';

export function readThemeChoice(): ThemeChoice {
  const kept = localStorage.getItem(KEY);
  return CHOICES.find((choice) => choice === kept) ?? 'system';
}

export function applyThemeChoice(choice: ThemeChoice): void {
  localStorage.setItem(KEY, choice);
  if (choice === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = choice;
}

export function nextThemeChoice(choice: ThemeChoice): ThemeChoice {
  return CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] as ThemeChoice;
}

/** What is on the screen now. */
export function themeNow(): Theme {
  const chosen = document.documentElement.dataset['theme'];
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return matchMedia(SYSTEM_DARK).matches ? 'dark' : 'light';
}
