// A list of choices that is walked from a text field: the field keeps the focus, the list says which choice is active.
//
//   const options = useOptions(found, onPick, keyOf)
//   <textarea aria-controls={options.id} aria-activedescendant={options.activeId} onKeyDown={options.onKey} />
//   <OptionList options={options} label={string} draw={(found) => element} />
//
// `useOptions`: `found` is what `search` gave, of which `keyOf` tells one from another; it keeps the active choice, and
// `onKey` returns true for keys it has used: arrows, Enter, Tab.

import { type ComponentChildren, type VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Found } from "./fuzzy";
import "./search.css";

export interface OptionsState<T> {
  readonly id: string;
  readonly found: readonly Found<T>[];
  readonly active: number;
  /** The id of the element of the active choice; undefined where there is none. */
  readonly activeId: string | undefined;
  readonly setActive: (index: number) => void;
  readonly pick: (index: number) => void;
  readonly onKey: (event: KeyboardEvent) => boolean;
}

export function useOptions<T>(found: readonly Found<T>[], onPick: (item: T) => void, keyOf: (item: T) => string): OptionsState<T> {
  const id = useId();
  const [wanted, setActive] = useState(0);
  const first = found[0] && keyOf(found[0].item);
  useEffect(() => setActive(0), [first]);
  const active = Math.min(wanted, found.length - 1);
  const pick = (index: number) => found[index] && onPick(found[index].item);
  const onKey = (event: KeyboardEvent): boolean => {
    if (!found.length || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return false;
    const step = (to: number) => setActive((to + found.length) % found.length);
    if (event.key === "ArrowDown") step(active + 1);
    else if (event.key === "ArrowUp") step(active - 1);
    else if (!event.shiftKey && (event.key === "Enter" || event.key === "Tab")) pick(active);
    else return false;
    event.preventDefault();
    return true;
  };
  return { id, found, active, activeId: found.length ? `${id}-${active}` : undefined, setActive, pick, onKey };
}

export interface OptionListProps<T> {
  options: OptionsState<T>;
  label: string;
  draw: (found: Found<T>) => ComponentChildren;
}

export function OptionList<T>({ options, label, draw }: OptionListProps<T>): VNode {
  const { id, found, active } = options;
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => list.current?.children[active]?.scrollIntoView?.({ block: "nearest" }), [active, found]);
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
