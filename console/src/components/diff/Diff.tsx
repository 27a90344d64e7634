// Changes of files: one below the other, or side by side, with the words that changed and the colours of the language.
//
//   <DiffView diff={DiffContent} view?={"unified" | "split"} onView?={(view) => void} decisions?={Map<path, decision>} onDecide?={(path, accepted) => void} />
//   <FileDiffView file={FileDiff} view? onView? decision? onDecide?={(accepted) => void} />
//
// `diff`: as ACP has it, or `{ changes, patch }` of any patch. `onDecide`: where the agent lets a person take single files; without it there are no buttons. Every line of a patch can be seen, and
// every character of it shows. `onView`: a button asks for the other view. Below a width of 40rem two sides are shown one
// below the other, and there is no such button.

import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Icon } from "../../app/Icon";
import { visible } from "../../text/visible";
import type { Line } from "../code/highlight";
import { useHighlighted } from "../code/highlight";
import { languageOf } from "../code/languages";
import { changedWords, type DiffContent, type FileDiff, type Hunk, type Part, type PatchLine, pairs, readDiff } from "./patch";
import "./diff.css";

const STEP = 400; // lines of a file that are drawn at once; a button draws the next ones

export type Decision = "accepted" | "rejected";
export type DiffLayout = "unified" | "split";

export interface DiffViewProps {
  diff: DiffContent;
  view?: DiffLayout;
  onView?: ((view: DiffLayout) => void) | undefined;
  decisions?: ReadonlyMap<string, Decision>;
  onDecide?: (path: string, accepted: boolean) => void;
}

export function DiffView({ diff, view = "unified", onView, decisions, onDecide }: DiffViewProps): VNode {
  const files = useMemo(() => readDiff(diff), [diff]);
  return (
    <div class="diff">
      {files.map((file, index) => (
        <FileDiffView
          key={`${index} ${file.path}`}
          file={file}
          view={view}
          onView={onView}
          decision={decisions?.get(file.path)}
          onDecide={onDecide && ((accepted) => onDecide(file.path, accepted))}
        />
      ))}
    </div>
  );
}

export interface FileDiffViewProps {
  file: FileDiff;
  view?: DiffLayout;
  onView?: ((view: DiffLayout) => void) | undefined;
  decision?: Decision | undefined;
  onDecide?: ((accepted: boolean) => void) | undefined;
}

export function FileDiffView({ file, view = "unified", onView, decision, onDecide }: FileDiffViewProps): VNode {
  const [shown, setShown] = useState(STEP);
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const name = visible(file.path);
  return (
    <div class="file-diff" role="group" aria-label={`Change of ${name || "a file"}`} data-decision={decision}>
      <header>
        <span class="diff-path">
          {file.operation && <span class="diff-operation">{visible(file.operation)} </span>}
          {file.oldPath !== null && `${visible(file.oldPath)} → `}
          <span class="path">{name}</span>
        </span>
        <span class="diff-count">
          <span class="count-added">+{file.added}</span> <span class="count-removed">−{file.removed}</span>
        </span>
        {onView && total > 0 && (
          <button type="button" class="button quiet icon diff-view" aria-pressed={view === "split"} aria-label="Side by side" title="Side by side"
            onClick={() => onView(view === "split" ? "unified" : "split")}>
            <Icon name="beside" size={16} />
          </button>
        )}
        {decision && <span class="diff-decision">{decision}</span>}
        {onDecide && !decision && (
          <span class="diff-buttons">
            <button type="button" class="button" onClick={() => onDecide(true)} aria-label={`Accept the change of ${name}`}>
              Accept
            </button>
            <button type="button" class="button" onClick={() => onDecide(false)} aria-label={`Reject the change of ${name}`}>
              Reject
            </button>
          </span>
        )}
      </header>
      {file.notes.length > 0 && <pre class="diff-notes">{visible(file.notes.join("\n"))}</pre>}
      {total > 0 && (
        <div class={`diff-lines patch ${view}`} tabIndex={0} role="group" aria-label={`Lines of ${name || "the change"}`}>
          {limited(file.hunks, shown).map((hunk, index) => (
            <HunkView key={index} hunk={hunk} view={view} language={languageOf(file.path)} isFirst={index === 0} />
          ))}
        </div>
      )}
      {total > shown && (
        <button type="button" class="button quiet diff-more" onClick={() => setShown(shown + STEP)}>
          Show {Math.min(STEP, total - shown)} of {total - shown} more lines
        </button>
      )}
    </div>
  );
}

function limited(hunks: readonly Hunk[], most: number): Hunk[] {
  const found: Hunk[] = [];
  let left = most;
  for (const hunk of hunks) {
    if (left <= 0) break;
    found.push(hunk.lines.length > left ? { ...hunk, lines: hunk.lines.slice(0, left) } : hunk);
    left -= hunk.lines.length;
  }
  return found;
}

// -- one hunk ----------------------------------------------------------------------------------------------------------

interface HunkViewProps {
  hunk: Hunk;
  view: DiffLayout;
  language: string;
  isFirst: boolean;
}

function HunkView({ hunk, view, language, isFirst }: HunkViewProps): VNode {
  const sides = useMemo(() => textsOf(hunk), [hunk]);
  const before = useHighlighted(sides.before.text, language);
  const after = useHighlighted(sides.after.text, language);
  const rows = useMemo(() => pairs(hunk.lines), [hunk]);
  const words = useMemo(() => wordsOf(rows), [rows]);
  const draw = (line: PatchLine) => {
    const colours = line.kind === "removed" ? before?.[sides.before.at.get(line)!] : after?.[sides.after.at.get(line)!];
    return <LineView line={line} parts={words.get(line)} colours={line.kind === "note" ? undefined : colours} />;
  };
  const heading = visible(hunk.heading);
  return (
    <div class="hunk">
      {(!isFirst || heading !== "") && <div class="hunk-heading">{heading || "…"}</div>}
      {view === "split"
        ? rows.map(([left, right], index) => (
            <div class="diff-row" key={index}>
              <div class={`diff-side ${left ? "" : "none"} ${left === right ? "both" : ""}`}>{left && draw(left)}</div>
              <div class={`diff-side ${right ? "" : "none"}`}>{right && draw(right)}</div>
            </div>
          ))
        : hunk.lines.map(draw)}
    </div>
  );
}

const SIGNS = { same: " ", added: "+", removed: "-", note: "" };

interface LineViewProps {
  line: PatchLine;
  parts: readonly Part[] | undefined;
  colours: Line | undefined;
}

function LineView({ line, parts, colours }: LineViewProps): VNode {
  return (
    <div class={`line ${line.kind}`} data-before={line.before ?? ""} data-after={line.after ?? ""}>
      <span class="sign">{SIGNS[line.kind]}</span>
      {pieces(line.text, parts, colours).map(({ text, kind, isChanged }) => {
        const shown = visible(text);
        if (!kind && !isChanged) return shown;
        return <span class={`${kind} ${isChanged ? "word" : ""}`}>{shown}</span>;
      })}
      {"\n"}
    </div>
  );
}

/** A line cut wherever its colour begins or ends, or a mark of a word does. */
function pieces(text: string, parts: readonly Part[] = [{ text, isChanged: false }], colours: Line = [{ text, kind: "" }]) {
  const found: { text: string; kind: string; isChanged: boolean }[] = [];
  let [part, colour, inPart, inColour] = [0, 0, 0, 0];
  while (part < parts.length && colour < colours.length) {
    const length = Math.min(parts[part]!.text.length - inPart, colours[colour]!.text.length - inColour);
    const piece = parts[part]!.text.slice(inPart, inPart + length);
    if (piece) found.push({ text: piece, kind: colours[colour]!.kind, isChanged: parts[part]!.isChanged });
    inPart += length;
    inColour += length;
    if (inPart === parts[part]!.text.length) [part, inPart] = [part + 1, 0];
    if (inColour === colours[colour]!.text.length) [colour, inColour] = [colour + 1, 0];
  }
  const known = found.reduce((sum, piece) => sum + piece.text.length, 0);
  if (known < text.length) found.push({ text: text.slice(known), kind: "", isChanged: false });
  return found;
}

function textsOf(hunk: Hunk) {
  const side = (other: PatchLine["kind"]) => {
    const lines = hunk.lines.filter((line) => line.kind !== other && line.kind !== "note");
    return { text: lines.map((line) => line.text).join("\n"), at: new Map(lines.map((line, index) => [line, index])) };
  };
  return { before: side("added"), after: side("removed") };
}

function wordsOf(rows: readonly [PatchLine | null, PatchLine | null][]): Map<PatchLine, Part[]> {
  const found = new Map<PatchLine, Part[]>();
  for (const [left, right] of rows) {
    if (!left || !right || left === right) continue;
    const words = changedWords(left.text, right.text);
    if (words) found.set(left, words.before).set(right, words.after);
  }
  return found;
}
