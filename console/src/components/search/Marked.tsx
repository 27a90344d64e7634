// A text with the characters that a search has found.
//
//   <Marked text={string} marks={Set<number>} />

import type { VNode } from "preact";
import { harmless } from "../../text/visible";

export interface MarkedProps {
  text: string;
  marks?: ReadonlySet<number> | undefined;
}

export function Marked({ text, marks }: MarkedProps): VNode {
  if (!marks || marks.size === 0) return <>{harmless(text)}</>;
  const parts: { text: string; isFound: boolean }[] = [];
  for (let at = 0; at < text.length; at++) {
    const isFound = marks.has(at);
    const last = parts.at(-1);
    if (last?.isFound === isFound) last.text += text[at];
    else parts.push({ text: text[at]!, isFound });
  }
  return <>{parts.map((part) => (part.isFound ? <mark>{harmless(part.text)}</mark> : harmless(part.text)))}</>;
}
