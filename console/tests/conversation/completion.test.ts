import { expect, test } from "vitest";
import { rowsAt } from "../../src/conversation/Completion";
import { SessionState } from "../../src/state/session";

function store() {
  const state = new SessionState("s");
  const commands = ["compact", "cost", "model", "mode", "undo"].map((name) => ({ name, description: `The ${name}` }));
  state.setCommands(commands, { "dragoman/mentions": [["docs:guide", "Guide"]] });
  return { current: { state } } as any;
}

const files = ["src/", "README.md", "tests/"].map((name) => ({ insert: `@${name}`, hint: "", description: "" }));
const words = (text: string) => rowsAt(text, text.length, store(), files)?.rows.map(({ item }) => item.insert) ?? null;

test.each([
  ["/", ["/compact", "/cost", "/model", "/mode", "/undo"]],
  ["/mode", ["/mode", "/model"]],
  ["/mdl", ["/model"]],
  ["/cpt", ["/compact"]],
  ["look at @rdm", ["@README.md"]],
  ["@dguide", ["@docs:guide"]],
  ["/qqq", null],
  ["a/mode", null],
  ["me@src", null],
])("%s is completed by letters in their order", (text, expected) => {
  expect(words(text)).toEqual(expected);
});

test("what is replaced is the word with its sign, and what matched is marked behind it", () => {
  const found = rowsAt("look at @rdm", 12, store(), files)!;
  expect([found.from, found.to]).toEqual([8, 12]);
  expect([...found.rows[0]!.marks[0]!].map((at) => "@README.md"[at]).join("")).toBe("RDM");
});
