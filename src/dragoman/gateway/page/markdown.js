// A little Markdown: paragraphs, headings, lists, quotes, code, rules; in a line code, bold, emphasis and links.
// Text that streams in is rendered as it comes: a block that another one follows is final, so only the end is redone.

import { link, make } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,40})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const ITEM = /^(\s{0,12})([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const TABLE = /^\s*\|/;
// Every repetition is bounded: no text makes this slow.
const INLINE = /`([^`\n]{1,2000})`|\*\*([^*\n]{1,2000})\*\*|\*([^*\s][^*\n]{0,500})\*|\[([^\]\n]{1,500})\]\(([^()\s]{1,2000})\)|https?:\/\/[^\s<>"'`)\]]{1,2000}/g;
const DEEPEST = 4;

/** Renders a text that grows at its end. */
export class Markdown {
  constructor(parent) {
    this.parent = parent;
    this.text = "";
    this.start = 0; // of what is not final
    this.nodes = []; // what was made of that
  }

  append(text) {
    this.text += text;
  }

  render() {
    for (const node of this.nodes) node.remove();
    const found = blocks(this.text, this.start);
    found.forEach((block) => this.parent.append(block.node));
    // A line that is not over may yet belong to the block before it.
    const whole = found.length && this.text.includes("\n", found.at(-1).start);
    const open = found.slice(whole ? -1 : -2);
    this.nodes = open.map((block) => block.node);
    if (open.length) this.start = open[0].start;
  }
}

/** Nodes for a whole text. */
export function markdown(text) {
  return blocks(text, 0).map((block) => block.node);
}

function blocks(text, from) {
  const found = [];
  let at = from;
  const peek = () => {
    const end = text.indexOf("\n", at);
    return text.slice(at, end < 0 ? text.length : end);
  };
  const step = (line) => { at += line.length + 1; };
  const gather = (wanted) => {
    const lines = [];
    while (at < text.length) {
      const line = peek();
      if (!wanted(line)) break;
      lines.push(line);
      step(line);
    }
    return lines;
  };
  while (at < text.length) {
    const line = peek();
    const start = at;
    let node;
    let match;
    if (!line.trim()) {
      step(line);
      continue;
    }
    if ((match = FENCE.exec(line))) {
      const [, mark, language] = match;
      step(line);
      const code = gather((next) => !isClosing(next, mark));
      if (at < text.length) step(peek());
      node = make("pre", { class: "code" }, make("code", { "data-language": language || null }, code.join("\n")));
    } else if ((match = HEADING.exec(line))) {
      step(line);
      node = inline(match[2], make(`h${Math.min(match[1].length + 1, 6)}`));
    } else if (RULE.test(line)) {
      step(line);
      node = make("hr");
    } else if (ITEM.test(line)) {
      node = list(gather((next) => ITEM.test(next) || (/^\s{2,}\S/.test(next))));
    } else if (QUOTE.test(line)) {
      const quoted = gather((next) => QUOTE.test(next)).map((next) => next.replace(QUOTE, ""));
      node = make("blockquote", {}, inline(quoted.join("\n"), make("p")));
    } else if (TABLE.test(line)) {
      node = make("pre", { class: "code" }, gather((next) => TABLE.test(next)).join("\n"));
    } else {
      const lines = [line];
      step(line);
      lines.push(...gather((next) => next.trim() && ![FENCE, HEADING, ITEM, QUOTE, TABLE].some((kind) => kind.test(next))));
      node = inline(lines.join("\n"), make("p"));
    }
    found.push({ start, node });
  }
  return found;
}

function isClosing(line, mark) {
  const bare = line.trim();
  return bare.length >= mark.length && bare === mark[0].repeat(bare.length);
}

function list(lines) {
  const element = make("ul");
  let item = null;
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (match) {
      const depth = Math.min(Math.floor(match[1].length / 2), DEEPEST);
      const mark = /\d/.test(match[2]) ? match[2] : "•";
      item = make("li", { class: `depth-${depth}`, "data-mark": mark });
      inline(match[3], item);
      element.append(item);
    } else if (item) {
      item.append("\n");
      inline(line.trim(), item);
    }
  }
  return element;
}

function inline(text, parent, depth = 0) {
  let at = 0;
  for (const match of depth < DEEPEST ? text.matchAll(INLINE) : []) {
    parent.append(text.slice(at, match.index));
    const [whole, code, bold, emphasis, label, address] = match;
    if (code !== undefined) parent.append(make("code", {}, code));
    else if (bold !== undefined) parent.append(inline(bold, make("strong"), depth + 1));
    else if (emphasis !== undefined) parent.append(inline(emphasis, make("em"), depth + 1));
    else if (label !== undefined) parent.append(link(label, address));
    else parent.append(link(whole, whole));
    at = match.index + whole.length;
  }
  parent.append(text.slice(at));
  return parent;
}
