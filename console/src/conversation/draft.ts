// What stands in the prompt. The field keeps its own text, so that typing draws nothing; others change it from here.

import { draft, keepDraft } from "../state/memory";

const field = () => document.getElementById("prompt") as HTMLTextAreaElement | null;

/** Put text before what has been written since. */
export function giveBack(name: string, text: string): void {
  setPrompt(name, [text, field()?.value ?? draft(name)].filter(Boolean).join("\n\n"));
}

/** Replace what stands in the prompt, and go there. */
export function setPrompt(name: string, text: string): void {
  const element = field();
  keepDraft(name, text);
  if (!element) return;
  element.value = text;
  element.dispatchEvent(new Event("input", { bubbles: true }));
  if (!matchMedia("(pointer: coarse)").matches) element.focus();
}
