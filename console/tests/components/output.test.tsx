import { render } from "@testing-library/preact";
import { expect, test } from "vitest";
import { appendOutput, type OutputLine, OutputReader } from "../../src/components/output/ansi";
import { Output } from "../../src/components/output/Output";

const ESC = "\u001b";
const texts = (lines: readonly OutputLine[]) => lines.map((line) => line.map((run) => run.text).join(""));
const read = (text: string) => new OutputReader().update(text);

test.each([
  ["colours are no text", `${ESC}[1;31mred${ESC}[0m end`, ["red end"]],
  ["a carriage return starts the line again", "10 %\r50 %\r100 %\ndone", ["100 %", "done"]],
  ["what a shorter text does not cover stays", "abcdef\rXY", ["XYcdef"]],
  ["a line end of Windows is one line end", "a\r\nb\r\n", ["a", "b"]],
  ["a backspace goes back", "abc\b\bX", ["aXc"]],
  ["erasing takes the end of the line", `abcdef\r${ESC}[3Cx\rab${ESC}[K`, ["ab"]],
  ["erasing the whole line", `abc${ESC}[2K\rnew`, ["new"]],
  ["a link is its label", `${ESC}]8;;https://a.example/${ESC}\\label${ESC}]8;;\u0007 end`, ["label end"]],
  ["a title, a device string and a charset have no effect", `${ESC}]0;evil\u0007a${ESC}Pq#0${ESC}\\b${ESC}(Bc`, ["abc"]],
  ["moves of the cursor have no effect", `a${ESC}[2Ab${ESC}[10;10Hc${ESC}[2Jd`, ["abcd"]],
  ["controls have no effect", "a\u0000b\u0007c\u009bd", ["abcd"]],
])("%s", (_, written, lines) => {
  expect(texts(read(written))).toEqual(lines);
});

test("output that comes in pieces, cut anywhere, reads as the whole", () => {
  const whole = `a${ESC}[38;5;208mb${ESC}[48;2;1;2;3mc\r\n${ESC}]8;;x${ESC}\\d${ESC}[0m\re${ESC}[K\n${ESC}[7mf`;
  const reader = new OutputReader();
  for (let end = 1; end < whole.length; end++) reader.update(whole.slice(0, end));
  expect(reader.update(whole)).toEqual(read(whole));
  expect(texts(read(whole))).toEqual(["abc", "e", "f"]);
});

test("styles go on over lines and ends of pieces", () => {
  const [, second] = read(`${ESC}[1;4;38;2;1;2;3mone\ntwo`);
  expect(second).toEqual([
    { text: "two", foreground: { type: "rgb", rgb: [1, 2, 3] }, background: null, decorations: new Set(["bold", "underline"]) },
  ]);
});

test("a sequence that never ends is bounded", () => {
  const reader = new OutputReader();
  const text = `${ESC}]${"x".repeat(9_000)}`;
  reader.update(text);
  expect(texts(reader.update(`${text}\nend`)).at(-1)).toBe("end");
});

test.each([
  ["escapes", ESC.repeat(200_000)],
  ["parameters", `${ESC}[${"1;".repeat(100_000)}m`],
  ["returns in one line", "word\r".repeat(40_000)],
  ["colours in one line", `${ESC}[31mw${ESC}[0m `.repeat(30_000)],
])("hostile output ends soon: %s", { timeout: 5_000 }, (_, text) => {
  expect(read(text).length).toBeLessThan(2);
});

test("colours are drawn by the theme, and what would be hidden is seen", () => {
  const { container } = render(<Output text={`${ESC}[31mred${ESC}[0m ${ESC}[38;5;196;48;5;16mcube${ESC}[0m ${ESC}[8msecret${ESC}[0m a\u202eb`} />);
  const [red, cube, secret] = [...container.querySelectorAll<HTMLElement>("span[class^=ansi]")];
  expect(red!.style.getPropertyValue("--ansi-ink")).toBe("var(--ansi-red)");
  expect(cube!.style.getPropertyValue("--ansi-ink")).toBe("rgb(255 0 0)");
  expect(cube!.style.getPropertyValue("--ansi-ground")).toBe("rgb(0 0 0)");
  expect(secret!.textContent).toBe("secret");
  expect(container.textContent).toContain("a⟨U+202E⟩b");
});

test("of very many lines the last ones are drawn, and it is said how many are not", () => {
  const { container } = render(<Output text={Array.from({ length: 5_000 }, (_, index) => `line ${index}`).join("\n")} />);
  expect(container.textContent).toContain("3000 earlier lines are not shown.");
  expect(container.textContent).toContain("line 4999");
  expect(container.textContent).not.toContain("line 2999\n");
});

test("what is kept of an output is bounded and begins with a whole line", () => {
  let text = "";
  for (let index = 0; index < 60_000; index++) text = appendOutput(text, `line ${index}\n`);
  expect(text.length).toBeLessThanOrEqual(256 * 1024);
  expect(text.length).toBeGreaterThan(190 * 1024);
  expect(text).toMatch(/^line \d+\n/);
  expect(text.endsWith("line 59999\n")).toBe(true);
});
