import { fireEvent, render, screen } from "@testing-library/preact";
import { expect, test, vi } from "vitest";
import { search } from "../../src/components/search/fuzzy";
import { Marked } from "../../src/components/search/Marked";
import { useOptions } from "../../src/components/search/Options";

const FILES = ["docs/index.md", "src/gateway/pages.py", "src/gateway/page/main.js", "tests/gateway/test_pages.py", "README.md"];
const paths = (query: string) => search(query, FILES, (path) => [path]).map(({ item }) => item);

test.each([
  ["gwpages", "src/gateway/pages.py"],
  ["pages gateway", "src/gateway/pages.py"],
  ["tstpage", "tests/gateway/test_pages.py"],
  ["readme", "README.md"],
  ["mainjs", "src/gateway/page/main.js"],
])("%s finds %s first", (query, path) => {
  expect(paths(query)[0]).toBe(path);
});

test("an empty query finds all in their order, one that fits nothing finds none", () => {
  expect(paths(" ")).toEqual(FILES);
  expect(paths("qqqq")).toEqual([]);
});

test("words may be found in different texts of an item, and it is said where", () => {
  const items = [{ name: "Fix the login", folder: "/w/web" }, { name: "Fix the list", folder: "/w/api" }];
  const [found, ...rest] = search("login web", items, ({ name, folder }) => [name, folder]);
  expect([found!.item, rest]).toEqual([items[0], []]);
  expect([...found!.marks[0]!].map((at) => items[0]!.name[at]).join("")).toContain("login");
});

test("what was found is marked, and nothing hides", () => {
  const { container } = render(<Marked text={"ab\u202ec"} marks={new Set([0, 1])} />);
  expect(container.innerHTML).toBe("<div><mark>ab</mark>⟨U+202E⟩c</div>".slice(5, -6));
});

test("a completion takes the keys it uses and leaves the others to the field", () => {
  const picked = vi.fn();
  const used: boolean[] = [];
  function Prompt() {
    const options = useOptions(search("", ["/plan", "/undo"], (name) => [name]), picked, (name) => name);
    return <input aria-activedescendant={options.activeId} onKeyDown={(event) => used.push(options.onKey(event))} />;
  }
  render(<Prompt />);
  const field = screen.getByRole("textbox");
  for (const key of ["ArrowDown", "Tab", "a", "Home"]) fireEvent.keyDown(field, { key });
  fireEvent.keyDown(field, { key: "Enter", shiftKey: true });
  expect(used).toEqual([true, true, false, false, false]);
  expect(picked.mock.calls).toEqual([["/undo"]]);
});
