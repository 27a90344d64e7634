// The theme, and the language of dates.

import { choose, settings, type Theme } from "../state/settings";
import { fullDate } from "../text/words";

const THEMES: [Theme, string][] = [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]];
const LOCALES = ["en-GB", "en-US", "de-DE", "de-CH", "es-ES", "fr-FR", "it-IT", "ja-JP", "ko-KR", "nl-NL", "pl-PL", "pt-BR", "sv-SE", "uk-UA", "zh-CN"];

export function Appearance() {
  const { theme, locale } = settings();
  return (
    <section aria-labelledby="appearance-title">
      <h2 id="appearance-title">Appearance</h2>
      <fieldset class="themes">
        <legend>Theme</legend>
        {THEMES.map(([value, text]) => (
          <label key={value} class="check">
            <input type="radio" name="theme" value={value} checked={theme === value} onChange={() => choose({ theme: value })} /> {text}
          </label>
        ))}
      </fieldset>
      <label class="field">
        Language of dates
        <select value={locale} onChange={(event) => choose({ locale: event.currentTarget.value })}>
          <option value="">As the browser ({nameOf(navigator.language)})</option>
          {LOCALES.map((one) => <option key={one} value={one}>{nameOf(one)}</option>)}
        </select>
      </label>
      <p class="small muted">Now: {fullDate(Date.now() / 1000)}</p>
    </section>
  );
}

function nameOf(locale: string): string {
  try {
    return new Intl.DisplayNames([locale], { type: "language" }).of(locale) ?? locale;
  } catch {
    return locale;
  }
}
