// Making elements. Nothing here, nor anywhere else in this page, turns text into markup: text becomes text nodes.

import { HIDDEN, IN_PROSE } from "./hidden.js";

/** An element with attributes and children; a child that is a string is text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (id) => document.getElementById(id);

// The table is the one of our terminal and our agent, and what this browser's Unicode does not know yet.
const HIDDEN_CHARACTERS = new RegExp(`[${HIDDEN}\\p{Cn}]`, "gu");
const OF_WRITING = new RegExp(`[${IN_PROSE}\\p{Cn}]`, "u");
const JOINER = /[\u200c\u200d]/u;
const FORM = /[\ufe0e\ufe0f]/u;

/** Text in which every character shows: for what a person has to judge before it is done. */
export function visible(text) {
  return String(text).replace(HIDDEN_CHARACTERS, spelled);
}

/** Text in which nothing hides but what writing needs: blanks, and joiners between letters and in emoji. */
export function harmless(text) {
  return String(text).replace(HIDDEN_CHARACTERS, (found, at, whole) =>
    OF_WRITING.test(found) || joins(found, whole.charAt(at - 1)) ? found : spelled(found));
}

function joins(found, before) {
  if (JOINER.test(before)) return false;
  if (JOINER.test(found)) return before > "\x7f";
  return FORM.test(found) && !FORM.test(before) && (before > "\x7f" || /[0-9#*]/.test(before));
}

function spelled(found) {
  return `⟨U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** An address that may become a link, or null. */
export function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

/** A link to elsewhere, which learns nothing of us; text where the address is of another kind. */
export function link(label, address) {
  const href = webAddress(address);
  if (href === null) return document.createTextNode(label === address ? label : `${label} (${address})`);
  return make("a", { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}
