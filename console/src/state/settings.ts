// What a person has chosen about this console, in this browser: the theme, the language of dates, notifications,
// how changes of files are shown.

import { keep, load, ofOrigin } from "./storage";

const NAME = "dragoman-settings";

export type Theme = "system" | "light" | "dark";

export interface Settings {
  theme: Theme;
  /** A language of dates and numbers, as `de-CH`; empty: that of the browser. */
  locale: string;
  /** Tell of questions and of turns that ended while the page is not seen. */
  notifies: boolean;
  /** Changes of files are shown with what was beside what is, where there is room. */
  isSplit: boolean;
}

const listeners = new Set<() => void>();

let chosen = read();

export function settings(): Settings {
  return chosen;
}

export function choose(change: Partial<Settings>): void {
  chosen = { ...chosen, ...change };
  keep(ofOrigin, NAME, chosen);
  applyTheme();
  for (const listener of listeners) listener();
}

/** Call back after each change, in this tab or another. */
export function onSettings(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The languages that dates are written in: what the browser takes for none means its own. */
export function locales(): string[] {
  return chosen.locale ? [chosen.locale] : [];
}

/** Say on the root which theme holds; without a choice the browser's. */
export function applyTheme(): void {
  if (chosen.theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen.theme;
}

addEventListener("storage", (event) => {
  if (event.key !== NAME) return;
  chosen = read();
  applyTheme();
  for (const listener of listeners) listener();
});

function read(): Settings {
  const found = load(ofOrigin, NAME) ?? {};
  const theme = ["light", "dark"].includes(found.theme) ? found.theme : "system";
  return { theme, locale: isLocale(found.locale) ? found.locale : "", notifies: found.notifies === true, isSplit: found.isSplit === true };
}

function isLocale(text: unknown): boolean {
  try {
    return typeof text === "string" && Intl.DateTimeFormat.supportedLocalesOf(text).length > 0;
  } catch {
    return false;
  }
}

