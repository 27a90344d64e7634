// Prompts that were sent: the arrow up in an empty field brings them back.

import { useRef } from "preact/hooks";
import type { SessionStore } from "../state/store";
import { plainText } from "./text";

const KEPT = 100;

interface History {
  add(text: string): void;
  /** Whether the key was for the history. */
  pressed(event: KeyboardEvent, field: HTMLTextAreaElement): boolean;
}

export function useHistory(store: SessionStore): History {
  const sent = useRef<string[]>([]);
  const place = useRef(0); // how far back; 0 is what is written now
  const add = (text: string) => {
    if (text.trim()) sent.current = [...sent.current.filter((one) => one !== text), text].slice(-KEPT);
    place.current = 0;
  };
  const known = () => {
    const said = (store.current?.state.items ?? []).flatMap((item) => (item.type === "user" ? [plainText(item.blocks)] : []));
    return [...new Set([...said, ...sent.current].reverse())];
  };
  const pressed = (event: KeyboardEvent, field: HTMLTextAreaElement) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") {
      if (event.key.length === 1) place.current = 0;
      return false;
    }
    if (event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return false;
    if (place.current === 0 && (field.value !== "" || event.key === "ArrowDown")) return false;
    const all = known();
    const next = place.current + (event.key === "ArrowUp" ? 1 : -1);
    if (next > all.length) return false;
    event.preventDefault();
    place.current = next;
    field.value = all[next - 1] ?? "";
    field.setSelectionRange(field.value.length, field.value.length);
    return true;
  };
  return { add, pressed };
}
