// A list of choices that is walked from a text field: the field keeps the focus, the list says which choice is active.
//
//   const options = useOptions(found, onPick)
//   <input {...options.field("Search")} onKeyDown={options.onKey} />
//   <OptionList options={options} label={string} draw={(found) => element} empty={string} />
//
// `useOptions`: `found` is what `search` gave; it keeps the active choice, and `onKey` returns true for keys it has used:
// arrows, Home and End where `isWholeField`, Enter, Tab where `picksByTab`. The field is an `input`: a `textarea` may not
// be a combobox.

import { type ComponentChildren, type VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Found } from "./fuzzy";
import "./search.css";

export interface OptionsState<T> {
  readonly id: string;
  readonly found: readonly Found<T>[];
  readonly active: number;
  readonly setActive: (index: number) => void;
  readonly pick: (index: number) => void;
  readonly onKey: (event: KeyboardEvent) => boolean;
  readonly field: (label?: string) => Record<string, string | boolean | undefined>;
}

export interface OptionsSettings {
  isOpen?: boolean;
  picksByTab?: boolean;
  isWholeField?: boolean;
}

export function useOptions<T>(
  found: readonly Found<T>[],
  onPick: (item: T) => void,
  { isOpen = true, picksByTab = false, isWholeField = false }: OptionsSettings = {},
): OptionsState<T> {
  const id = useId();
  const [wanted, setActive] = useState(0);
  const first = found[0]?.item;
  useEffect(() => setActive(0), [first, found.length === 0]);
  const active = Math.min(wanted, found.length - 1);
  const hasList = isOpen && found.length > 0;
  const pick = (index: number) => found[index] && onPick(found[index].item);
  const onKey = (event: KeyboardEvent): boolean => {
    if (!hasList || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return false;
    const step = (to: number) => setActive((to + found.length) % found.length);
    if (event.key === "ArrowDown") step(active + 1);
    else if (event.key === "ArrowUp") step(active - 1);
    else if (event.key === "Home" && isWholeField) step(0);
    else if (event.key === "End" && isWholeField) step(found.length - 1);
    else if (!event.shiftKey && (event.key === "Enter" || (event.key === "Tab" && picksByTab))) pick(active);
    else return false;
    event.preventDefault();
    return true;
  };
  const field = (label?: string) => ({
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-haspopup": "listbox",
    "aria-expanded": hasList,
    "aria-controls": hasList ? id : undefined,
    "aria-activedescendant": hasList ? `${id}-${active}` : undefined,
    "aria-label": label,
    autocomplete: "off",
  });
  return { id, found, active, setActive, pick, onKey, field };
}

export interface OptionListProps<T> {
  options: OptionsState<T>;
  label: string;
  draw: (found: Found<T>) => ComponentChildren;
  empty?: string;
}

export function OptionList<T>({ options, label, draw, empty }: OptionListProps<T>): VNode {
  const { id, found, active } = options;
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => list.current?.children[active]?.scrollIntoView?.({ block: "nearest" }), [active, found]);
  if (found.length === 0) return <p class="option-none" role="status">{empty}</p>;
  return (
    <ul ref={list} id={id} class="option-list" role="listbox" aria-label={label}>
      {found.map((one, index) => (
        <li
          key={index}
          id={`${id}-${index}`}
          class="option"
          role="option"
          aria-selected={index === active}
          onMouseDown={(event) => event.preventDefault()} // or the field loses the focus
          onMouseMove={() => index !== active && options.setActive(index)}
          onClick={() => options.pick(index)}
        >
          {draw(one)}
        </li>
      ))}
    </ul>
  );
}
