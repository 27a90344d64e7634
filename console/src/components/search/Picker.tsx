// A dialog to find one thing among many by typing: a command, a file, a session, a folder.
//
//   <Picker title={string} items={readonly T[]} textsOf={(item) => string[]} onPick={(item) => void} onClose={() => void}
//     draw?={(found) => element} placeholder?={string} empty?={string} />
//
// `textsOf`: what is searched: the name, then what says more; these are drawn unless `draw` draws something else. The
// picker closes itself by `onClose` before `onPick`, so that the focus is back where it was.

import type { ComponentChildren, VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Dialog } from "../overlay/Dialog";
import { type Found, search } from "./fuzzy";
import { Marked } from "./Marked";
import { OptionList, useOptions } from "./Options";

export interface PickerProps<T> {
  title: string;
  items: readonly T[];
  textsOf: (item: T) => readonly string[];
  onPick: (item: T) => void;
  onClose: () => void;
  draw?: (found: Found<T>) => ComponentChildren;
  placeholder?: string;
  empty?: string;
}

export function Picker<T>(props: PickerProps<T>): VNode {
  const { title, items, textsOf, onPick, onClose, placeholder = "Type to search", empty = "Nothing matches." } = props;
  const [query, setQuery] = useState("");
  const found = useMemo(() => search(query, items, textsOf), [query, items]);
  const pick = (item: T) => {
    onClose();
    onPick(item);
  };
  const options = useOptions(found, pick, { isWholeField: true });
  const draw = props.draw ?? ((one: Found<T>) => <OptionText texts={textsOf(one.item)} marks={one.marks} />);
  return (
    <Dialog title={title} onClose={onClose} class="picker">
      <input
        type="text"
        autofocus
        spellcheck={false}
        placeholder={placeholder}
        value={query}
        onInput={(event) => setQuery(event.currentTarget.value)}
        onKeyDown={options.onKey}
        {...options.field(title)}
      />
      <OptionList options={options} label={title} draw={draw} empty={empty} />
    </Dialog>
  );
}

/** The texts of a choice: the first one large, the others behind it. */
export function OptionText({ texts, marks }: { texts: readonly string[]; marks: Found<unknown>["marks"] }): VNode {
  return (
    <>
      {texts.map((text, index) => (
        <span key={index} class={index === 0 ? "option-name" : "option-detail"}>
          <Marked text={text} marks={marks[index]} />
        </span>
      ))}
    </>
  );
}
