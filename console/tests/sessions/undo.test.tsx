// What can be undone is done when its time is over, when another takes its place, and when the screen is left.

import { act, cleanup, fireEvent, render, screen } from "@testing-library/preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Undo, type Undoable } from "../../src/sessions/Undo";

let done: string[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  done = [];
});

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const undoable = (name: string): Undoable => ({
  text: `${name} was deleted.`,
  undo: () => done.push(`undo ${name}`),
  commit: () => done.push(`commit ${name}`),
});

test("undo takes it back, and nothing else is done later", () => {
  const end = vi.fn();
  const { unmount } = render(<Undo undoable={undoable("one")} end={end} />);
  fireEvent.click(screen.getByText("Undo"));
  unmount();
  expect([done, end.mock.calls.length]).toEqual([["undo one"], 1]);
});

test("when its time is over it is done", () => {
  render(<Undo undoable={undoable("one")} end={() => {}} />);
  act(() => void vi.advanceTimersByTime(9_000));
  expect(done).toEqual([]);
  act(() => void vi.advanceTimersByTime(2_000));
  expect(done).toEqual(["commit one"]);
});

test("another one in its place settles it, and so does leaving the screen", () => {
  const { rerender, unmount } = render(<Undo undoable={undoable("one")} end={() => {}} />);
  rerender(<Undo undoable={undoable("two")} end={() => {}} />);
  expect(done).toEqual(["commit one"]);
  unmount();
  expect(done).toEqual(["commit one", "commit two"]);
});
