// A button that copies a text and says so.
//
//   <CopyButton text={string} what={string} />
//
// `what`: what is copied, for its name: `Copy code`.

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";

const SHOWN_MS = 2000;

export interface CopyButtonProps {
  text: string;
  what?: string;
}

export function CopyButton({ text, what = "text" }: CopyButtonProps): VNode {
  const [outcome, setOutcome] = useState<"" | "Copied" | "Not copied">("");
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => setOutcome((await copyText(text)) ? "Copied" : "Not copied");
  return (
    <button type="button" class="copy-button" aria-label={`Copy ${what}`} onClick={copy}>
      <span aria-live="polite">{outcome || "Copy"}</span>
    </button>
  );
}

/** Put a text on the clipboard. False: the browser did not let us; without https it has none to write to. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
