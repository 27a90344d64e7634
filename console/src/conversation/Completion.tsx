// What completes the word before the cursor: commands behind a `/` at the beginning; files of the folder, and what else the
// agent can be pointed at, behind an `@`.

import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Found, search } from "../components/search/fuzzy";
import { Marked } from "../components/search/Marked";
import { OptionList, type OptionsState, useOptions } from "../components/search/Options";
import type { SessionStore } from "../state/store";
import { visible } from "../text/visible";
import { getJson } from "../wire/post";

const SHOWN = 8; // rows
const FRESH = 15_000; // milliseconds for which a folder is as it was
const FOLDERS = 50; // that are remembered

interface Row {
  /** What stands in the prompt then. */
  insert: string;
  /** What may follow it, as the agent says. */
  hint: string;
  description: string;
}

interface Open {
  from: number;
  to: number;
  rows: Found<Row>[];
}

const NONE: Found<Row>[] = [];
const keyOf = ({ insert }: Row) => insert;

export interface CompletionState {
  options: OptionsState<Row>;
  attributes: Record<string, string | boolean | undefined>;
  look(): void;
  close(): void;
  /** Whether the key was for the list. */
  pressed(event: KeyboardEvent): boolean;
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
    setOpen(rowsAt(value, selectionStart, store, rows));
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
  const options = useOptions(open?.rows ?? NONE, take, keyOf);
  const pressed = (event: KeyboardEvent) => {
    if (!open || event.isComposing) return false;
    if (event.key === "Enter" && isWhole(open, options.active, field.current!)) return false;
    if (event.key === "Escape") {
      close();
      event.preventDefault();
    } else if (!options.onKey(event)) return false;
    event.stopPropagation();
    return true;
  };
  // No `aria-expanded`: a text area has none.
  const attributes = { "aria-controls": open ? options.id : undefined, "aria-activedescendant": options.activeId };
  return { options, attributes, look, close, pressed };
}

export function CompletionList({ completion: { options } }: { completion: CompletionState }) {
  return (
    <div id="completion" hidden={options.found.length === 0}>
      {options.found.length > 0 && <OptionList options={options} label="Completions" draw={drawRow} />}
    </div>
  );
}

function drawRow({ item: { insert, hint, description }, marks }: Found<Row>) {
  return (
    <>
      <span class="word"><Marked text={insert} marks={marks[0]} />{hint && ` ${visible(hint)}`}</span>
      <span class="muted ellipsis">{visible(description)}</span>
    </>
  );
}

/** A word that is written out already is sent by Enter, and not completed once more. */
function isWhole(open: Open, active: number, field: HTMLTextAreaElement): boolean {
  return field.value.slice(open.from, open.to) === open.rows[active]!.item.insert;
}

/** What completes the word that ends at `at`, by letters of it in their order; null where there is nothing. */
export function rowsAt(text: string, at: number, store: Pick<SessionStore, "current">, files: Row[] = []): Open | null {
  const state = store.current?.state;
  const command = /^\/(\S*)$/.exec(text.slice(0, at));
  const mention = /(?:^|\s)@(\S*)$/.exec(text.slice(0, at));
  const word = (command ?? mention)?.[1];
  if (word === undefined) return null;
  const rows: Row[] = command
    ? (state?.commands ?? []).map(({ name, description, input }) => ({ insert: `/${name}`, hint: input?.hint ?? "", description }))
    : [...files, ...(state?.mentions ?? []).map(([to, name]) => ({ insert: `@${to}`, hint: "", description: name }))];
  // The sign in front is not searched: it is there.
  const found = search(word, rows, ({ insert }) => [insert.slice(1)], SHOWN);
  const shifted = found.map(({ item, marks }) => ({ item, marks: marks.map((one) => new Set([...one].map((place) => place + 1))) }));
  return found.length ? { from: at - word.length - 1, to: at, rows: shifted } : null;
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
        const rows = names.map((name) => ({ insert: `@${folder}${name}`, hint: "", description: "" }));
        this.#known.set(path, { rows, at: Date.now() });
        changed();
      }, () => null);
    }
    return known?.rows ?? [];
  }
}
