// A change of files, line by line.

import { make, visible } from "./dom.js";

const LINES = 5000; // more than this nobody reads here, and a browser gets slow
const KINDS = { "+": "added", "-": "removed", "@": "place" };

/** An element for a diff as ACP version 2 has it: what is done to which paths, and a patch. */
export function diffView(diff) {
  const element = make("div", { class: "diff" });
  for (const change of diff.changes ?? []) {
    const from = change.oldPath ? `${visible(change.oldPath)} → ` : "";
    element.append(make("div", { class: "path" }, `${visible(change.operation ?? "")} ${from}${visible(change.path ?? "")}`));
  }
  const text = diff.patch?.text;
  if (typeof text === "string") element.append(patchView(text, (diff.changes ?? []).length > 0));
  return element;
}

function patchView(text, named) {
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = make("pre", { class: "patch" });
  let inside = false; // before the first place a line names files
  for (const line of lines.slice(0, LINES)) {
    if (/^diff --git /.test(line)) inside = false;
    if (line.startsWith("@@")) inside = true;
    else if (named && !inside && /^(diff --git |index |--- |\+\+\+ )/.test(line)) continue;
    shown.append(make("span", { class: `line ${inside ? KINDS[line[0]] ?? "same" : "place"}` }, visible(line) + "\n"));
  }
  if (lines.length > LINES) shown.append(make("span", { class: "line place" }, `${lines.length - LINES} more lines are not shown.\n`));
  return shown;
}
