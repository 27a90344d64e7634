// The options of a session: model, mode, and whatever else the agent offers. Lists of the browser's own, since these work
// with every finger, key and screen reader.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { focusPrompt } from "../app/Frame";
import { useStore } from "../app/context";
import type { Choice, ChoiceGroup, Option } from "../state/types";
import { visible } from "../text/visible";

/** The value of the row that asks for a name; no model has an empty one. */
const OTHER = "";

export function Options() {
  const store = useStore();
  const options = store.shownOptions;
  const session = store.current?.state.id ?? "";
  return (
    <div id="options">
      {options.map((option) => <OptionView key={`${session} ${option.configId}`} option={option} />)}
    </div>
  );
}

function OptionView({ option }: { option: Option }) {
  const store = useStore();
  const label = visible(option.name);
  if (option.type === "boolean") {
    return (
      <label class="option check" title={option.description ?? undefined}>
        <input type="checkbox" data-option={option.configId} checked={option.currentValue === true}
          onChange={(event) => void store.choose(option, event.currentTarget.checked)} />
        <span>{label}</span>
      </label>
    );
  }
  return option.type === "select" ? <Select option={option} label={label} /> : null;
}

function Select({ option, label }: { option: Option; label: string }) {
  const store = useStore();
  const list = useRef<HTMLSelectElement>(null);
  const [isNaming, setNaming] = useState(false);
  const isBack = useRef(false); // the list has just come back, and gets the focus that the field had
  useLayoutEffect(() => {
    if (isBack.current) list.current?.focus();
    isBack.current = false;
  }, [isNaming]);
  // What was refused is not shown as chosen: the list says what the session has, whatever was clicked.
  useLayoutEffect(() => {
    if (list.current && document.activeElement !== list.current) list.current.value = String(option.currentValue);
  });
  const choose = async (value: string) => {
    await store.choose(option, value);
    if (list.current) list.current.value = String(currentOf(store.shownOptions, option));
  };
  if (isNaming) {
    const done = (name: string) => {
      setNaming(false);
      if (name) {
        focusPrompt();
        void choose(name);
      } else isBack.current = true;
    };
    return <ModelName option={option} label={label} done={done} leave={() => setNaming(false)} />;
  }
  return (
    <label class="option" title={option.description ?? undefined}>
      <span>{label}</span>
      <select ref={list} data-option={option.configId} value={String(option.currentValue)} onChange={(event) => {
        const { value } = event.currentTarget;
        if (value === OTHER) setNaming(true);
        else void choose(value);
      }}>
        {(option.options ?? []).map((one) => <Row key={"value" in one ? one.value : one.name} one={one} />)}
        {option.category === "model" && <option value={OTHER}>Another…</option>}
      </select>
    </label>
  );
}

function currentOf(options: Option[], option: Option): string | boolean {
  return options.find(({ configId }) => configId === option.configId)?.currentValue ?? option.currentValue;
}

function Row({ one }: { one: Choice | ChoiceGroup }) {
  if ("options" in one) {
    return <optgroup label={visible(one.name)}>{one.options.map((row) => <Row key={row.value} one={row} />)}</optgroup>;
  }
  return <option value={one.value} title={one.description ?? undefined}>{visible(one.name)}</option>;
}

interface NameProps {
  option: Option;
  label: string;
  done: (name: string) => void;
  leave: () => void;
}

/** A field in the place of the list, for a model that is not in it: Enter takes the name, leaving brings the list back. */
function ModelName({ option, label, done, leave }: NameProps) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  return (
    <input ref={field} class="option" placeholder="provider/name" aria-label={label} data-named={option.configId} onBlur={leave}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        done(event.key === "Enter" ? event.currentTarget.value.trim() : "");
      }} />
  );
}
