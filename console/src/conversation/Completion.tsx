// What completes the word before the cursor: commands behind a `/` at the beginning, mentions behind an `@`.

import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import type { SessionStore } from "../state/store";
import { visible } from "../text/visible";

const SHOWN = 8; // rows

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
  const look = () => {
    const element = field.current!;
    const found = rowsAt(element.value, element.selectionStart, store);
    setOpen((before) => found && { ...found, chosen: Math.min(before?.chosen ?? 0, found.rows.length - 1) });
  };
  const take = (row: Row) => {
    const element = field.current!;
    if (!open) return;
    element.setRangeText(`${row.insert} `, open.from, open.to, "end");
    element.dispatchEvent(new Event("input", { bubbles: true }));
    close();
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
export function rowsAt(text: string, at: number, store: Pick<SessionStore, "current">): Omit<Open, "chosen"> | null {
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
    rows = (state?.mentions ?? []).map(([word, name]) => ({ insert: `@${word}`, label: `@${word}`, description: name }));
  } else return null;
  const wanted = text.slice(from, at).toLowerCase();
  const starts = rows.filter(({ insert }) => insert.toLowerCase().startsWith(wanted));
  const has = rows.filter((row) => !starts.includes(row) && row.insert.toLowerCase().includes(wanted.slice(1)));
  const found = [...starts, ...has].slice(0, SHOWN);
  return found.length ? { from, to: at, rows: found } : null;
}
