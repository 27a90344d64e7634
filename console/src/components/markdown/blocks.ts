// Markdown as blocks: CommonMark with the tables, strikethrough and links of GFM, by markdown-it. No text becomes markup:
// what comes out is a tree of values (`MarkdownBlock`), which `Markdown.tsx` draws as elements.
//
// A text that streams in is parsed from its last open block on. A block is final as soon as another one follows that has a
// whole line: nothing that comes later can change it. `MarkdownStream.update` takes the whole text each time, so that a
// caller keeps one string and no state of a parser.

import MarkdownIt, { type Env, type Token } from "markdown-it";

/** One block of the top level. `key` is where it begins in the text. Two updates give the same object for a final one. */
export interface MarkdownBlock {
  readonly key: number;
  readonly tokens: readonly Token[];
}

const SLICE = 8 * 1024; // characters of new text that one update parses; the rest waits for the next
const LONGEST_BLOCK = 64 * 1024; // a block of more is cut in two, or each update would parse it anew
const FENCE = /^ {0,3}(`{3,}|~{3,})[^\n]*\n/;

const parser = new MarkdownIt({ html: false, linkify: true });
// What may be a link is decided where it is drawn, by `webAddress`.
parser.validateLink = () => true;
// `a.py` is a file far more often than a machine in Paraguay: an address of the web says its protocol.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });

type References = NonNullable<Env["references"]>;

/** Parses a text that grows at its end. */
export class MarkdownStream {
  private text = "";
  private start = 0; // of what is not final
  private prefix = ""; // the line that opens a block of code which was cut
  private final: MarkdownBlock[] = [];
  private references: References = {}; // the addresses that are named above `start`
  private ofTail: References = {}; // those, and what the last parse found below, which may not be whole
  private knowsAll = false; // what refers to an address below it has found it
  private behind = false;

  /** Whether the last update left some of the text for the next one. */
  get isBehind(): boolean {
    return this.behind;
  }

  /** The blocks of the text. With `ended` nothing comes any more, and what refers to addresses below it finds them. */
  update(text: string, ended = false): MarkdownBlock[] {
    if (!text.startsWith(this.text)) this.reset();
    const end = this.endOfSlice(text);
    this.behind = end < text.length;
    this.text = text.slice(0, end);
    const open = this.parse();
    const refers = Object.keys(this.ofTail).length > 0;
    if (ended && refers && !this.behind && !this.knowsAll) return this.again();
    return [...this.final, ...open];
  }

  /** Parse the whole text once more, now that all its addresses are known. */
  private again(): MarkdownBlock[] {
    const { text, ofTail } = this;
    this.reset(ofTail);
    this.knowsAll = true;
    if (text.length > LONGEST_BLOCK) return this.update(text, true);
    this.text = text;
    this.start = text.length;
    this.final = parseMarkdown(text);
    return this.final;
  }

  private reset(references: References = {}): void {
    this.text = "";
    this.start = 0;
    this.prefix = "";
    this.final = [];
    this.references = references;
    this.ofTail = references;
    this.knowsAll = false;
    this.behind = false;
  }

  private endOfSlice(text: string): number {
    const known = this.text.length;
    if (text.length - known <= SLICE) return text.length;
    const line = text.lastIndexOf("\n", known + SLICE) + 1;
    return line > known ? line : known + SLICE;
  }

  /** Make final what cannot change, and return the blocks that can. */
  private parse(): MarkdownBlock[] {
    const blocks = this.blocksTo(this.text.length);
    const last = blocks.at(-1);
    if (!last) return [];
    // A line that is not over may yet belong to the block before it.
    const open = blocks.splice(this.text.indexOf("\n", last.key) >= 0 ? -1 : -2);
    this.final.push(...blocks);
    const start = open[0]!.key;
    if (start > this.start) this.advance(start, "");
    if (this.text.length - this.start <= LONGEST_BLOCK) return open;
    this.cut();
    return this.parse();
  }

  /** Make final what there is of a block that is too long. Code goes on as code. */
  private cut(): void {
    const line = this.text.lastIndexOf("\n") + 1;
    const at = line > this.start ? line : this.text.length;
    const blocks = this.blocksTo(at);
    const opening = FENCE.exec(this.prefix + this.text.slice(this.start))?.[0] ?? "";
    this.final.push(...blocks);
    this.advance(at, blocks.length === 1 ? opening : "");
  }

  private advance(start: number, prefix: string): void {
    if (Object.keys(this.ofTail).length > Object.keys(this.references).length) {
      parser.parse(this.prefix + this.text.slice(this.start, start), { references: this.references });
    }
    this.start = start;
    this.prefix = prefix;
  }

  /** The blocks between `start` and `end`. */
  private blocksTo(end: number): MarkdownBlock[] {
    if (end <= this.start) return [];
    const source = this.prefix + this.text.slice(this.start, end);
    this.ofTail = { ...this.references };
    const tokens = parser.parse(source, { references: this.ofTail });
    const starts = lineStarts(source).map((at) => Math.max(this.start, this.start - this.prefix.length + at));
    return topBlocks(tokens, starts);
  }
}

/** The blocks of a text that does not grow. */
export function parseMarkdown(text: string): MarkdownBlock[] {
  return topBlocks(parser.parse(text, {}), lineStarts(text));
}

function lineStarts(source: string): number[] {
  const starts = [0];
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function topBlocks(tokens: Token[], starts: number[]): MarkdownBlock[] {
  const blocks: MarkdownBlock[] = [];
  let from = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.level > 0 || token.nesting > 0) continue;
    const line = tokens[from]!.map?.[0] ?? 0;
    blocks.push({ key: starts[line] ?? 0, tokens: tokens.slice(from, index + 1) });
    from = index + 1;
  }
  return blocks;
}
