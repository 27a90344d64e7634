// A change of files, line by line.

import { make, visible } from "./dom.js";

const LINES = 5000; // lines shown of a patch; with more a browser gets slow
const KINDS = { "+": "added", "-": "removed", "@": "place" };

/** An element for a diff as ACP version 2 has it: what is done to which paths, and a patch. */
export function diffView(diff) {
  const element = make("div", { class: "diff" });
  for (const change of diff.changes ?? []) {
    const from = change.oldPath ? `${visible(change.oldPath)} → ` : "";
    element.append(make("div", { class: "path" }, `${visible(change.operation ?? "")} ${from}${visible(change.path ?? "")}`));
  }
  const text = diff.patch?.text;
  if (typeof text === "string") element.append(patchView(text, pathsOf(diff)));
  return element;
}

/** The paths that a diff says it changes. */
export function pathsOf(diff) {
  return (diff.changes ?? []).flatMap((change) => [change.path, change.oldPath]).filter((path) => typeof path === "string");
}

/** Whether a line before the first place only repeats which files are changed. One that names another file does not. */
function repeats(line, paths) {
  if (/^index /.test(line)) return true;
  const name = /^(?:--- |\+\+\+ |diff --git .* (?=b?\/))(?:[ab]\/)?([^\t]+)/.exec(line)?.[1];
  return name !== undefined && (name === "/dev/null" || paths.some((path) => path === name || path.endsWith(`/${name}`)));
}

/** The lines of a patch of files at these paths. */
export function patchView(text, paths) {
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = make("pre", { class: "patch" });
  let inside = false; // before the first place a line names files
  for (const line of lines.slice(0, LINES)) {
    if (/^diff --git /.test(line)) inside = false;
    if (line.startsWith("@@")) inside = true;
    else if (paths.length && !inside && repeats(line, paths)) continue;
    shown.append(make("span", { class: `line ${inside ? KINDS[line[0]] ?? "same" : "place"}` }, visible(line) + "\n"));
  }
  if (lines.length > LINES) shown.append(make("span", { class: "line place" }, `${lines.length - LINES} more lines are not shown.\n`));
  return shown;
}
