// What a command writes, as lines with colours. Colours and styles (SGR) are read by ansi-sequence-parser; here is what a
// terminal does beside them, as far as output that is read later needs it: a carriage return and a backspace go back in
// the line, erasing takes the line away, and every other sequence is left out. A sequence that has not ended waits.
//
// `OutputReader.update` takes the whole text each time, and reads what was added to the one before.

import { type Color, createAnsiSequenceParser, type DecorationType } from "ansi-sequence-parser";

/** Characters in one style. */
export interface Run {
  readonly text: string;
  readonly foreground: Color | null;
  readonly background: Color | null;
  readonly decorations: ReadonlySet<DecorationType>;
}
export type OutputLine = readonly Run[];

const SGR = /\u001b\[[\d;:]{0,64}m/y;
const ERASE = /\u001b\[[012]?K/y;
const SEQUENCE =
  /\u001b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\u001b\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|\u001b[PX^_][^\u001b]{0,4096}\u001b\\|\u001b[ -/]{0,8}[0-OQ-WYZ`-~\\]/y;
const UNFINISHED = /\u001b(?:\[[0-?]{0,64}[ -/]{0,8}|[\]PX^_][^\u0007\u001b]{0,4096}\u001b?|[ -/]{0,8})$/;
const LONGEST_SEQUENCE = 4_096 + 8;
const TEXT = /[^\u0000-\u0008\u000b-\u001f\u007f-\u009f\n]+/y;
const LONGEST_LINE = 10_000; // characters; what a longer line has beyond them stays in it, but is not overwritten

/** Reads a text that grows at its end. */
export class OutputReader {
  private text = "";
  private rest = "";
  private parser = createAnsiSequenceParser();
  private style: Omit<Run, "text"> = PLAIN;
  private lines: OutputLine[] = [];
  private line: Run[] = [];
  private length = 0; // characters of that line
  private column = 0;

  /** The lines of the text. A line that is over is the same object in the next update. */
  update(text: string): OutputLine[] {
    if (!text.startsWith(this.text)) this.reset();
    const news = this.rest + text.slice(this.text.length);
    this.text = text;
    const tail = news.slice(-LONGEST_SEQUENCE);
    const cut = /\r$/.exec(tail) ?? UNFINISHED.exec(tail);
    this.rest = cut ? cut[0] : "";
    this.read(news.slice(0, news.length - this.rest.length));
    return this.line.length > 0 ? [...this.lines, [...this.line]] : [...this.lines];
  }

  private reset(): void {
    this.text = "";
    this.rest = "";
    this.parser = createAnsiSequenceParser();
    this.style = PLAIN;
    this.lines = [];
    this.replace([]);
    this.column = 0;
  }

  private replace(line: Run[]): void {
    this.line = line;
    this.length = line.reduce((sum, run) => sum + run.text.length, 0);
  }

  private read(news: string): void {
    let at = 0;
    const match = (pattern: RegExp): string | null => {
      pattern.lastIndex = at;
      return pattern.exec(news)?.[0] ?? null;
    };
    while (at < news.length) {
      let found: string | null;
      if ((found = match(TEXT)) !== null) this.write(found);
      else if ((found = match(SGR)) !== null) this.restyle(found);
      else if ((found = match(ERASE)) !== null) this.erase(found);
      else if ((found = match(SEQUENCE)) === null) this.control((found = news[at]!));
      at += found.length;
    }
  }

  private control(character: string): void {
    if (character === "\n") {
      this.lines.push(this.line);
      this.replace([]);
      this.column = 0;
    } else if (character === "\r") this.column = 0;
    else if (character === "\b") this.column = Math.max(0, this.column - 1);
  }

  private restyle(sequence: string): void {
    // The parser tells its style with text only.
    const [token] = this.parser.parse(`${sequence}x`).slice(-1);
    if (!token) return;
    const { foreground, background, decorations } = token;
    this.style = { foreground, background, decorations: new Set(decorations) };
  }

  private erase(sequence: string): void {
    const [before, after] = [take(this.line, 0, this.column), take(this.line, this.column, Infinity)];
    const kind = sequence.at(-2);
    const blank = { ...PLAIN, text: " ".repeat(Math.min(this.column, LONGEST_LINE)) };
    if (kind === "1") this.replace([blank, ...after]);
    else if (kind === "2") this.replace(this.column > 0 ? [blank] : []);
    else this.replace(before);
  }

  private write(text: string): void {
    const run = { ...this.style, text };
    if (this.length > LONGEST_LINE) this.column = this.length;
    if (this.column < this.length) {
      const end = this.column + text.length;
      this.replace([...take(this.line, 0, this.column), run, ...take(this.line, end, Infinity)]);
    } else {
      const gap = this.column - this.length;
      if (gap > 0) this.line.push({ ...PLAIN, text: " ".repeat(gap) });
      this.line.push(run);
      this.length = this.column + text.length;
    }
    this.column += text.length;
  }
}

const PLAIN = { foreground: null, background: null, decorations: new Set<DecorationType>() };

/** The characters of a line from one column to another. */
function take(line: readonly Run[], from: number, to: number): Run[] {
  const found: Run[] = [];
  let column = 0;
  for (const run of line) {
    const text = run.text.slice(Math.max(0, from - column), Math.max(0, to - column));
    if (text) found.push({ ...run, text });
    column += run.text.length;
  }
  return found;
}

// -- the text that is kept ---------------------------------------------------------------------------------------------

const KEPT = 256 * 1024; // characters
const SLACK = 64 * 1024; // cut so much at once: a text that loses its head has to be read anew

/** An output with more at its end; the oldest lines are dropped where it gets too long. */
export function appendOutput(text: string, more: string): string {
  const whole = text + more;
  if (whole.length <= KEPT) return whole;
  const at = whole.length - KEPT + SLACK;
  return whole.slice(whole.indexOf("\n", at) + 1 || at);
}
