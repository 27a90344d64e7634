// What completes the word before the cursor: commands behind a `/` at the beginning; files of the folder, and what else the
// agent can be pointed at, behind an `@`.

import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import type { SessionStore } from "../state/store";
import { visible } from "../text/visible";
import { getJson } from "../wire/post";

const SHOWN = 8; // rows
const FRESH = 15_000; // milliseconds for which a folder is as it was
const FOLDERS = 50; // that are remembered

interface Row {
  /** What stands in the prompt then. */
  insert: string;
  label: string;
  description: string;
}

interface Open {
  from: number;
  to: number;
  rows: Row[];
  chosen: number;
}

export interface CompletionState {
  open: Open | null;
  attributes: Record<string, string | boolean | undefined>;
  look(): void;
  close(): void;
  /** Whether the key was for the list. */
  pressed(event: KeyboardEvent): boolean;
  take(row: Row): void;
}

export function useCompletion(field: RefObject<HTMLTextAreaElement | null>, store: SessionStore): CompletionState {
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  const files = useRef(new FileNames(store.mayPrompt));
  const look = () => {
    const element = field.current;
    if (!element || document.activeElement !== element) return;
    const { value, selectionStart } = element;
    const folder = folderAt(value, selectionStart);
    const rows = folder === null ? [] : files.current.rows(store.current?.state.cwd ?? "", folder, look);
    const found = rowsAt(value, selectionStart, store, rows);
    setOpen((before) => found && { ...found, chosen: Math.min(before?.chosen ?? 0, found.rows.length - 1) });
  };
  const take = (row: Row) => {
    const element = field.current!;
    if (!open) return;
    // A folder is gone on in.
    const isFolder = row.insert.endsWith("/");
    close();
    element.setRangeText(isFolder ? row.insert : `${row.insert} `, open.from, open.to, "end");
    element.dispatchEvent(new Event("input", { bubbles: true }));
    element.focus();
  };
  const pressed = (event: KeyboardEvent) => {
    if (!open || event.isComposing) return false;
    const { length } = open.rows;
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: length - 1 };
    if (event.key in steps) setOpen({ ...open, chosen: (open.chosen + steps[event.key]!) % length });
    else if (event.key === "Escape") close();
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && !isWhole(open, field.current!))) take(open.rows[open.chosen]!);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  // No `aria-expanded`: a text area has none.
  const attributes = { "aria-activedescendant": open ? `completion-${open.chosen}` : undefined };
  return { open, attributes, look, close, pressed, take };
}

export function CompletionList({ completion: { open, take } }: { completion: CompletionState }) {
  return (
    <ul id="completion" role="listbox" aria-label="Completions" hidden={open === null}>
      {open?.rows.map((row, index) => (
        <li key={row.insert} id={`completion-${index}`} role="option" aria-selected={index === open.chosen}
          onMouseDown={(event) => (event.preventDefault(), take(row))}>
          <span class="word">{visible(row.label)}</span> <span class="muted ellipsis">{visible(row.description)}</span>
        </li>
      ))}
    </ul>
  );
}

/** A word that is written out already is sent by Enter, and not completed once more. */
function isWhole(open: Open, field: HTMLTextAreaElement): boolean {
  return field.value.slice(open.from, open.to) === open.rows[open.chosen]!.insert;
}

/** What completes the word that ends at `at`; null where there is nothing. */
export function rowsAt(text: string, at: number, store: Pick<SessionStore, "current">, files: Row[] = []): Omit<Open, "chosen"> | null {
  const state = store.current?.state;
  const command = /^\/(\S*)$/.exec(text.slice(0, at));
  const mention = /(?:^|\s)@(\S*)$/.exec(text.slice(0, at));
  let rows: Row[] = [];
  let from = 0;
  if (command) {
    rows = (state?.commands ?? []).map(({ name, description, input }) => ({
      insert: `/${name}`, label: `/${name}${input?.hint ? ` ${input.hint}` : ""}`, description,
    }));
  } else if (mention) {
    from = at - mention[1]!.length - 1;
    rows = [...files, ...(state?.mentions ?? []).map(([word, name]) => ({ insert: `@${word}`, label: `@${word}`, description: name }))];
  } else return null;
  const wanted = text.slice(from, at).toLowerCase();
  const starts = rows.filter(({ insert }) => insert.toLowerCase().startsWith(wanted));
  const has = rows.filter((row) => !starts.includes(row) && row.insert.toLowerCase().includes(wanted.slice(1)));
  const found = [...starts, ...has].slice(0, SHOWN);
  return found.length ? { from, to: at, rows: found } : null;
}

/** The folder of the path behind an `@` that ends at `at`: `src/` of `@src/ma`, "" of `@ma`; null where there is none. */
export function folderAt(text: string, at: number): string | null {
  const mention = /(?:^|\s)@(\S*)$/.exec(text.slice(0, at))?.[1];
  return mention === undefined || mention.startsWith("/") ? null : mention.slice(0, mention.lastIndexOf("/") + 1);
}

/** The names in folders of a session, as the server shows them to this user. */
class FileNames {
  readonly #known = new Map<string, { rows: Row[]; at: number }>();

  constructor(private readonly isAllowed: boolean) {}

  /** What is known of a folder now; `changed` is called when more is. */
  rows(cwd: string, folder: string, changed: () => void): Row[] {
    const path = `${cwd}/${folder}`;
    const known = this.#known.get(path);
    if (this.isAllowed && cwd && (!known || Date.now() - known.at > FRESH)) {
      this.#known.set(path, { rows: known?.rows ?? [], at: Date.now() });
      if (this.#known.size > FOLDERS) this.#known.delete(this.#known.keys().next().value!);
      // An agent on another machine has other folders than the server: then nothing is completed.
      getJson<{ folders: { name: string }[]; files: string[] }>("/api/folders", { path, files: "1" }).then((page) => {
        const names = [...page.folders.map(({ name }) => `${name}/`), ...page.files].filter((name) => !/\s/.test(name));
        const rows = names.map((name) => ({ insert: `@${folder}${name}`, label: `@${folder}${name}`, description: "" }));
        this.#known.set(path, { rows, at: Date.now() });
        changed();
      }, () => null);
    }
    return known?.rows ?? [];
  }
}
