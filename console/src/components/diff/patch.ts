// A patch as files with hunks, for the eye of a person who has to judge it. Unlike a library that applies patches, this
// loses no line: what it does not understand becomes a note and is shown. The words that changed in a
// line are found by `diff` (jsdiff).

import { diffWordsWithSpace } from "diff";

export type LineKind = "same" | "added" | "removed" | "note";

export interface PatchLine {
  readonly kind: LineKind;
  readonly text: string; // without its sign
  readonly before: number | null; // its number in the file as it was
  readonly after: number | null;
}

export interface Hunk {
  readonly heading: string; // what a patch says behind the second @@
  readonly lines: readonly PatchLine[];
}

export interface FileDiff {
  readonly path: string;
  readonly oldPath: string | null;
  readonly operation: string; // such as add, delete, modify, move; empty where it is not said
  readonly notes: readonly string[]; // lines of the patch that are no lines of the file, such as a new mode
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
}

/** A change of files as ACP has it. */
export interface DiffContent {
  readonly changes?: readonly { readonly operation?: string; readonly path?: string; readonly oldPath?: string | null }[];
  readonly patch?: { readonly text?: string } | null;
}

const HEADING = /^@@+ -(\d+)(?:,\d+)? (?:-\d+(?:,\d+)? )*\+(\d+)(?:,\d+)? @@+ ?(.*)$/;
const NAME = /^(?:--- |\+\+\+ |diff --git .* (?=b?\/))(?:[ab]\/)?([^\t]+)/;

/** The files that a change is about: those it names, and those that its patch changes beyond them. */
export function readDiff({ changes = [], patch }: DiffContent): FileDiff[] {
  const named = changes.map(({ operation = "", path = "", oldPath }) => ({ operation, path, oldPath: oldPath ?? null }));
  const files = typeof patch?.text === "string" ? readPatch(patch.text, named.flatMap(({ path, oldPath }) => [path, oldPath ?? path])) : [];
  const rest = [...files];
  const found = named.map((change) => {
    const at = rest.findIndex((file) => isSame(file.path, change.path) || (named.length === 1 && file.path === ""));
    const file = at >= 0 ? rest.splice(at, 1)[0]! : EMPTY;
    return { ...file, ...change, operation: change.operation || file.operation };
  });
  return [...found, ...rest];
}

const EMPTY: FileDiff = { path: "", oldPath: null, operation: "", notes: [], hunks: [], added: 0, removed: 0 };

function isSame(name: string, path: string): boolean {
  return name !== "" && (name === path || path.endsWith(`/${name}`));
}

/** The files of a patch. `known`: paths that are shown beside it, so that a line that repeats one is left out. */
export function readPatch(text: string, known: readonly string[] = []): FileDiff[] {
  const files: FileDraft[] = [];
  let file: FileDraft | null = null;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const begins = line.startsWith("diff --git ") || (line.startsWith("--- ") && !file?.isInHead && !file?.expects());
    if (!file || begins) files.push((file = new FileDraft(known)));
    file.take(line);
  }
  return files.map((draft) => draft.done());
}

class FileDraft {
  isInHead = true;
  private readonly names = { before: "", after: "" };
  private readonly notes: string[] = [];
  private readonly hunks: { heading: string; lines: PatchLine[] }[] = [];
  private before = 0;
  private after = 0;
  private left = { before: 0, after: 0 };

  constructor(private readonly known: readonly string[]) {}

  /** Whether the hunk still lacks lines: a removed `-- x` is no name of a file then. */
  expects(): boolean {
    return this.left.before > 0 || this.left.after > 0;
  }

  take(line: string): void {
    const heading = this.expects() ? null : HEADING.exec(line);
    if (heading) this.open(line, heading);
    else if (this.isInHead) this.head(line);
    else this.body(line);
  }

  private open(line: string, [, before, after, heading]: RegExpExecArray): void {
    this.isInHead = false;
    this.before = Number(before);
    this.after = Number(after);
    const count = (sign: string) => Number(new RegExp(` \\${sign}\\d+(?:,(\\d+))?`).exec(line)?.[1] ?? 1);
    this.left = { before: count("-"), after: count("+") };
    this.hunks.push({ heading: heading ?? "", lines: [] });
  }

  private head(line: string): void {
    const name = NAME.exec(line)?.[1];
    if (name !== undefined && name !== "/dev/null") this.names[line.startsWith("---") ? "before" : "after"] = name;
    const repeats = /^index /.test(line) || name === "/dev/null" || this.known.some((path) => isSame(name ?? "", path));
    if (!repeats) this.notes.push(line);
  }

  private body(line: string): void {
    const lines = this.hunks.at(-1)!.lines;
    const sign = line[0] ?? " "; // some tools cut the blank of an empty line
    const text = line.slice(1);
    if (sign === "+") lines.push({ kind: "added", text, before: null, after: this.after++ });
    else if (sign === "-") lines.push({ kind: "removed", text, before: this.before++, after: null });
    else if (sign === " ") lines.push({ kind: "same", text, before: this.before++, after: this.after++ });
    else lines.push({ kind: "note", text: line, before: null, after: null });
    if (sign === "-" || sign === " ") this.left.before -= 1;
    if (sign === "+" || sign === " ") this.left.after -= 1;
  }

  done(): FileDiff {
    const lines = this.hunks.flatMap((hunk) => hunk.lines);
    const path = this.names.after || this.names.before;
    const oldPath = this.names.before !== "" && this.names.before !== path ? this.names.before : null;
    const count = (kind: LineKind) => lines.filter((line) => line.kind === kind).length;
    const { notes, hunks } = this;
    return { path, oldPath, operation: "", notes, hunks, added: count("added"), removed: count("removed") };
  }
}

// -- word marks --------------------------------------------------------------------------------------------------------

/** A part of a line, and whether it is what changed. */
export interface Part {
  readonly text: string;
  readonly isChanged: boolean;
}

const LONGEST_LINE = 1_000; // characters; words of longer lines are not compared
const MOST_EDITS = 200;

/** What changed between two lines; null: so much that marks would hide more than they show. */
export function changedWords(before: string, after: string): { before: Part[]; after: Part[] } | null {
  if (before.length > LONGEST_LINE || after.length > LONGEST_LINE) return null;
  const changes = diffWordsWithSpace(before, after, { maxEditLength: MOST_EDITS });
  if (!changes) return null;
  const kept = changes.filter(({ added, removed }) => !added && !removed);
  const same = kept.reduce((sum, { value }) => sum + value.trim().length, 0);
  if (same * 3 < Math.max(before.trim().length, after.trim().length)) return null;
  const side = (isOurs: (change: { added: boolean; removed: boolean }) => boolean) =>
    changes.filter(isOurs).map(({ value, added, removed }) => ({ text: value, isChanged: added || removed }));
  return { before: side(({ added }) => !added), after: side(({ removed }) => !removed) };
}

/** The lines of a hunk two by two: a removed line beside the added one that takes its place. */
export function pairs(lines: readonly PatchLine[]): [PatchLine | null, PatchLine | null][] {
  const found: [PatchLine | null, PatchLine | null][] = [];
  let removed: PatchLine[] = [];
  let added: PatchLine[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) found.push([removed[at] ?? null, added[at] ?? null]);
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === "removed") {
      if (added.length > 0) flush();
      removed.push(line);
    } else if (line.kind === "added") added.push(line);
    else {
      flush();
      found.push([line, line]);
    }
  }
  flush();
  return found;
}
