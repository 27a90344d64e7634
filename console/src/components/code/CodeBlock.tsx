// A block of code with its language, colours and a button that copies it.
//
//   <CodeBlock code={string} language={string} isOpen={boolean} label={string} />
//
// `language`: as a fence or `languageOf(path)` says it; empty for none. `isOpen`: it still grows, so long ones wait for their
// colours. `label`: shown in place of the language, such as a path.

import { Component, type VNode } from "preact";
import { harmless, visible } from "../../text/visible";
import { CopyButton } from "../CopyButton";
import { type Line, plainLines, useHighlighted } from "./highlight";
import "./code.css";

const CHUNK = 100; // lines drawn as one: what has been drawn is not compared again while the end grows
const LONGEST_OPEN = 6_000; // characters of a growing block that are coloured again with each frame

export interface CodeBlockProps {
  code: string;
  language?: string;
  isOpen?: boolean;
  label?: string;
}

export function CodeBlock({ code, language = "", isOpen = false, label }: CodeBlockProps): VNode {
  const isLong = isOpen && code.length > LONGEST_OPEN;
  const lines = useHighlighted(code, isLong ? "" : language) ?? plainLines(code);
  const name = visible(label ?? language);
  return (
    <figure class="code-block">
      <figcaption>
        <span class="code-name">{name || "text"}</span>
        <CopyButton text={code} what="code" />
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={name ? `Code, ${name}` : "Code"}>
        <code>{chunks(lines)}</code>
      </pre>
    </figure>
  );
}

function chunks(lines: readonly Line[]): VNode[] {
  const found: VNode[] = [];
  for (let at = 0; at < lines.length; at += CHUNK) found.push(<Chunk key={at} lines={lines.slice(at, at + CHUNK)} />);
  return found;
}

class Chunk extends Component<{ lines: readonly Line[] }> {
  override shouldComponentUpdate({ lines }: { lines: readonly Line[] }): boolean {
    const before = this.props.lines;
    return lines.length !== before.length || lines.some((line, index) => !isSameLine(line, before[index]!));
  }

  override render({ lines }: { lines: readonly Line[] }): VNode {
    return <span class="code-lines">{lines.map((line) => [<CodeLine line={line} />, "\n"])}</span>;
  }
}

function isSameLine(one: Line, other: Line): boolean {
  return (
    one === other ||
    (one.length === other.length &&
      one.every((piece, index) => piece.text === other[index]!.text && piece.kind === other[index]!.kind))
  );
}

function CodeLine({ line }: { line: Line }): VNode {
  return <>{line.map(({ text, kind }) => (kind ? <span class={kind}>{harmless(text)}</span> : harmless(text)))}</>;
}
