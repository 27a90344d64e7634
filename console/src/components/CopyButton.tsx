// A button that copies a text and says so.
//
//   <CopyButton text={string | (() => string)} what={string} isIcon? />
//
// `text`: a function is called when it is copied. `what`: what is copied, for its name: `Copy code`.

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "../app/Icon";

const SHOWN_MS = 2000;

export interface CopyButtonProps {
  text: string | (() => string);
  what: string;
  isIcon?: boolean;
}

export function CopyButton({ text, what, isIcon = false }: CopyButtonProps): VNode {
  const [outcome, setOutcome] = useState<"" | "Copied" | "Not copied">("");
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => setOutcome((await copyText(typeof text === "string" ? text : text())) ? "Copied" : "Not copied");
  const name = `Copy ${what}`;
  return (
    <button type="button" class={isIcon ? "button quiet icon" : "copy-button"} aria-label={name} title={isIcon ? outcome || name : undefined} onClick={copy}>
      {isIcon && <Icon name={outcome === "Copied" ? "check" : outcome ? "close" : "copy"} size={16} />}
      <span class={isIcon ? "sr-only" : undefined} aria-live="polite">{outcome || (isIcon ? "" : "Copy")}</span>
    </button>
  );
}

/** Put a text on the clipboard. False: the browser did not let us; without https it has none to write to. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
