// Colours for code, by highlight.js (through lowlight, which gives a tree and no markup). The library and its grammars are
// fetched when they are first needed: until then, and for ever where that fails, code is shown without colours.
//
// A text of more than LONGEST characters stays without: a grammar may need a time that grows with its square, and this is
// the thread that draws.

import { useEffect, useState } from "preact/hooks";
import { grammarFor, loadGrammar } from "./languages";

/** A piece of a line; `kind` is a class of highlight.js such as `hljs-string`, or empty. */
export interface Piece {
  readonly text: string;
  readonly kind: string;
}
export type Line = readonly Piece[];

export const LONGEST = 20_000;
const REMEMBERED = 100; // texts whose colours are kept, for a list that draws them again

interface Tree {
  readonly type: string;
  readonly value?: string;
  readonly properties?: Record<string, unknown>;
  readonly children?: readonly Tree[];
}
interface Library {
  registered(name: string): boolean;
  register(name: string, grammar: never): void;
  highlight(name: string, code: string): Tree;
}

let library: Library | null = null;
const remembered = new Map<string, Line[]>();

/** The lines of a code with their colours, if its grammar is here already; else null. */
export function highlightNow(code: string, language: string): Line[] | null {
  const grammar = grammarFor(language);
  if (grammar === null || code.length > LONGEST || !library?.registered(grammar)) return null;
  const key = `${grammar}\n${code}`;
  const known = remembered.get(key);
  if (known) return known;
  const lines = linesOf(library.highlight(grammar, code));
  if (remembered.size >= REMEMBERED) remembered.delete(remembered.keys().next().value!);
  remembered.set(key, lines);
  return lines;
}

/** Fetch what a language needs. False: there is no grammar for it. Raises where it cannot be fetched. */
export async function prepareLanguage(language: string): Promise<boolean> {
  const grammar = grammarFor(language);
  if (grammar === null) return false;
  const [{ createLowlight }, rules] = await Promise.all([import("./library"), loadGrammar(grammar)]);
  library ??= createLowlight() as unknown as Library;
  if (!library.registered(grammar)) library.register(grammar, rules as never);
  return true;
}

/** The coloured lines of a code as soon as they can be had; null until then. */
export function useHighlighted(code: string, language: string): Line[] | null {
  const [, setReady] = useState("");
  const grammar = grammarFor(language);
  useEffect(() => {
    if (grammar === null || code.length > LONGEST || library?.registered(grammar)) return;
    let isHere = true;
    const tell = () => isHere && setReady(grammar);
    prepareLanguage(grammar).then(tell, () => {}); // code without colours is code all the same
    return () => {
      isHere = false;
    };
  }, [grammar, code.length > LONGEST]);
  return highlightNow(code, language);
}

/** A text as lines without colours. */
export function plainLines(code: string): Line[] {
  return code.split("\n").map((text) => [{ text, kind: "" }]);
}

function linesOf(tree: Tree): Line[] {
  const lines: Piece[][] = [[]];
  const walk = (node: Tree, kind: string): void => {
    const own = node.properties?.className;
    const inner = Array.isArray(own) ? own.join(" ") : kind;
    for (const child of node.children ?? []) walk(child, inner);
    for (const [index, text] of (node.value?.split("\n") ?? []).entries()) {
      if (index > 0) lines.push([]);
      if (text) lines.at(-1)!.push({ text, kind });
    }
  };
  walk(tree, "");
  return lines;
}
