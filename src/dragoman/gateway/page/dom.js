// Making elements. Nothing here, nor anywhere else in this page, turns text into markup: text becomes text nodes.

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

// What does not show, or makes what follows show in another order.
const HIDDEN = new RegExp(`[${[
  "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad", // controls, the soft hyphen
  "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u206f", // order, and ends of lines
  "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u3164\\uffa0\\u2800", // letters and signs that are blank
  "\\u180b-\\u180f\\u200b-\\u200d\\u2060-\\u2065\\ufeff\\ufff9-\\ufffb", // nothing at all
  "\\ufe00-\\ufe0f\\u{e0000}-\\u{e0fff}", // variants and tags, which can carry a text of their own
].join("")}]`, "gu");

/** Text in which every character shows: for what a person has to judge before it is done. */
export function visible(text) {
  return String(text).replace(HIDDEN, (found) => `⟨U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
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
