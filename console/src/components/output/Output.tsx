// The output of a command, in its colours.
//
//   <Output text={string} isRunning?={boolean} label?={string} />
//
// `text`: all that is kept of it, with its escape sequences; it may grow by each render (`appendOutput` of ansi.ts keeps it
// bounded). The end stays in view while it is in view. Nothing of the text but colours and styles has an effect.

import { Component, createRef, type VNode } from "preact";
import type { Color } from "ansi-sequence-parser";
import { visible } from "../../text/visible";
import { type OutputLine, OutputReader, type Run } from "./ansi";
import "./output.css";

const CHUNK = 100; // lines drawn as one
const SHOWN = 2_000; // lines drawn: the last ones
const NEAR_END = 8;

export interface OutputProps {
  text: string;
  isRunning?: boolean;
  label?: string;
}

export class Output extends Component<OutputProps> {
  private readonly reader = new OutputReader();
  private readonly box = createRef<HTMLPreElement>();
  private isAtEnd = true;

  override shouldComponentUpdate(next: OutputProps): boolean {
    return next.text !== this.props.text || next.isRunning !== this.props.isRunning || next.label !== this.props.label;
  }

  override componentDidMount(): void {
    this.componentDidUpdate();
  }

  override componentDidUpdate(): void {
    const box = this.box.current;
    if (box && this.isAtEnd) box.scrollTop = box.scrollHeight;
  }

  private readonly onScroll = (): void => {
    const box = this.box.current!;
    this.isAtEnd = box.scrollHeight - box.clientHeight - box.scrollTop <= NEAR_END;
  };

  override render({ text, isRunning = false, label = "Output" }: OutputProps): VNode {
    const lines = this.reader.update(text);
    const first = Math.max(0, Math.ceil((lines.length - SHOWN) / CHUNK) * CHUNK);
    const chunks: VNode[] = [];
    for (let at = first; at < lines.length; at += CHUNK) {
      chunks.push(<Chunk key={at} lines={lines.slice(at, at + CHUNK)} />);
    }
    return (
      <pre ref={this.box} class="output screen" tabIndex={0} role="group" aria-label={label} aria-busy={isRunning} onScroll={this.onScroll}>
        {first > 0 && <span class="output-cut">{first} earlier lines are not shown.{"\n"}</span>}
        {chunks}
      </pre>
    );
  }
}

class Chunk extends Component<{ lines: readonly OutputLine[] }> {
  override shouldComponentUpdate({ lines }: { lines: readonly OutputLine[] }): boolean {
    const before = this.props.lines;
    return lines.length !== before.length || lines.some((line, index) => line !== before[index]);
  }

  override render({ lines }: { lines: readonly OutputLine[] }): VNode {
    return <span class="output-lines">{lines.map((line) => [line.map(drawRun), "\n"])}</span>;
  }
}

function drawRun(run: Run): VNode | string {
  const text = visible(run.text);
  const isReverse = run.decorations.has("reverse");
  const [ink, ground] = isReverse ? [run.background, run.foreground] : [run.foreground, run.background];
  const classes = [...run.decorations].map((name) => `ansi-${name}`);
  const style: Record<string, string> = {};
  if (ink) style["--ansi-ink"] = colourOf(ink);
  if (ground) style["--ansi-ground"] = colourOf(ground);
  if (ground) classes.push("ansi-on");
  else if (ink) classes.push("ansi-ink");
  if (classes.length === 0) return text;
  return (
    <span class={classes.join(" ")} style={style}>
      {text}
    </span>
  );
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The 16 named colours are those of the theme; the others are what the sequence says. */
function colourOf(colour: Color): string {
  if (colour.type === "rgb") return `rgb(${colour.rgb.join(" ")})`;
  if (colour.type === "named") return `var(--ansi-${colour.name.replace("bright", "").toLowerCase()})`;
  const { index } = colour;
  if (index < 16) return `var(--ansi-${NAMES[index % 8]})`;
  if (index >= 232) return `rgb(${Array(3).fill(8 + (index - 232) * 10).join(" ")})`;
  const level = (part: number) => (part === 0 ? 0 : 55 + part * 40);
  const cube = index - 16;
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}
