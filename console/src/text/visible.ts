// Text of others as a person may read it. Nothing in the console turns text into markup: text becomes text nodes.

import { HIDDEN, IN_PROSE } from "./hidden";

// The table is the one of our terminal and our agent, and what this browser's Unicode does not know yet.
const HIDDEN_CHARACTERS = new RegExp(`[${HIDDEN}\\p{Cn}]`, "gu");
const OF_WRITING = new RegExp(`[${IN_PROSE}\\p{Cn}]`, "u");
const JOINER = /[\u200c\u200d]/u;
const FORM = /[\ufe0e\ufe0f]/u;

/** Text in which every character shows: for what a person has to judge before it is done. */
export function visible(text: unknown): string {
  return String(text).replace(HIDDEN_CHARACTERS, spelled);
}

/** Text in which nothing hides but what writing needs: blanks, and joiners between letters and in emoji. */
export function harmless(text: unknown): string {
  return String(text).replace(HIDDEN_CHARACTERS, (found: string, at: number, whole: string) =>
    OF_WRITING.test(found) || joins(found, whole.charAt(at - 1)) ? found : spelled(found),
  );
}

/** An address that may become a link, or null. */
export function webAddress(text: string): string | null {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

function joins(found: string, before: string): boolean {
  if (JOINER.test(before)) return false;
  if (JOINER.test(found)) return before > "\x7f";
  return FORM.test(found) && !FORM.test(before) && (before > "\x7f" || /[0-9#*]/.test(before));
}

function spelled(found: string): string {
  return `⟨U+${found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
