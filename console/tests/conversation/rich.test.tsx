import { fireEvent, render, screen } from "@testing-library/preact";
import { expect, test } from "vitest";
import { DiffView } from "../../src/conversation/rich";
import type { DiffContent } from "../../src/state/types";

const diff = (path: string): DiffContent => ({
  type: "diff", changes: [{ operation: "modify", path }], patch: { text: "@@ -1 +1 @@\n-a\n+b\n" },
});

test("a person who wants two sides gets them in every change, and in this browser from then on", () => {
  const { container } = render(<><DiffView diff={diff("one")} /><DiffView diff={diff("two")} /></>);
  const views = () => [...container.querySelectorAll(".diff-lines")].map((one) => one.classList.contains("split"));
  const [button] = screen.getAllByRole("button", { name: "Side by side" });
  expect([views(), button!.getAttribute("aria-pressed")]).toEqual([[false, false], "false"]);
  fireEvent.click(button!);
  expect([views(), button!.getAttribute("aria-pressed")]).toEqual([[true, true], "true"]);
  expect(JSON.parse(localStorage.getItem("dragoman-settings")!).isSplit).toBe(true);
  fireEvent.click(button!);
  expect(views()).toEqual([false, false]);
});

test("a change without lines has no two sides to choose", () => {
  render(<DiffView diff={{ type: "diff", changes: [{ operation: "delete", path: "gone" }] }} />);
  expect(screen.queryByRole("button")).toBeNull();
});
