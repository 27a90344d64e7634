import { act, fireEvent, render, screen } from "@testing-library/preact";
import { useState } from "preact/hooks";
import { afterEach, expect, test, vi } from "vitest";
import { Announcer } from "../../src/components/overlay/Announcer";
import { ConfirmDialog } from "../../src/components/overlay/Dialog";
import { Menu } from "../../src/components/overlay/Menu";
import { Toast } from "../../src/components/overlay/Toast";
import { CopyButton } from "../../src/components/CopyButton";

afterEach(() => {
  vi.useRealTimers();
});

function Deletion({ onConfirm }: { onConfirm: () => void }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <button onClick={() => setAsked(true)}>Delete</button>
      {isAsked && (
        <ConfirmDialog title="Delete it?" confirm="Delete" isDangerous onConfirm={onConfirm} onClose={() => setAsked(false)}>
          It is gone then.
        </ConfirmDialog>
      )}
    </>
  );
}

test("a dialog closes, runs what was confirmed, and gives the focus back", () => {
  const confirmed = vi.fn();
  render(<Deletion onConfirm={confirmed} />);
  const opener = screen.getByRole("button", { name: "Delete" });
  opener.focus();
  fireEvent.click(opener);
  const dialog = screen.getByRole("dialog", { name: "Delete it?" });
  fireEvent.click(screen.getAllByRole("button", { name: "Delete" }).at(-1)!);
  expect(confirmed).toHaveBeenCalledOnce();
  expect(dialog.isConnected).toBe(false);
  expect(document.activeElement).toBe(opener);
});

test("Escape closes a dialog and confirms nothing", () => {
  const confirmed = vi.fn();
  render(<Deletion onConfirm={confirmed} />);
  fireEvent.click(screen.getByRole("button", { name: "Delete" }));
  const dialog = screen.getByRole("dialog");
  dialog.dispatchEvent(new Event("cancel", { cancelable: true }));
  return vi.waitFor(() => {
    expect(dialog.isConnected).toBe(false);
    expect(confirmed).not.toHaveBeenCalled();
  });
});

function openMenu() {
  const picked: string[] = [];
  const item = (label: string) => ({ label, onPick: () => picked.push(`${label} with focus on ${document.activeElement?.textContent}`) });
  render(<Menu label="Session" items={[item("Rename"), { ...item("Archive"), isDisabled: true }, item("Delete")]}>More</Menu>);
  const button = screen.getByRole("button", { name: "Session" });
  button.focus();
  fireEvent.keyDown(button, { key: "ArrowDown" });
  return { picked, button, menu: screen.getByRole("menu", { name: "Session" }) };
}

test("a menu is walked by arrows and letters, past what is disabled", () => {
  const { menu } = openMenu();
  const walked = ["ArrowDown", "ArrowDown", "End", "Home", "d"].map((key) => {
    fireEvent.keyDown(menu, { key });
    return document.activeElement?.textContent;
  });
  expect(walked).toEqual(["Delete", "Rename", "Delete", "Rename", "Delete"]);
});

test("an action of a menu runs when the focus is back on its button", () => {
  const { picked, menu } = openMenu();
  fireEvent.click(screen.getByRole("menuitem", { name: "Rename" }));
  expect(picked).toEqual(["Rename with focus on More"]);
  expect(menu.isConnected).toBe(false);
});

test.each(["Escape", "Tab"])("%s closes a menu and gives the focus back", (key) => {
  const { button, menu, picked } = openMenu();
  fireEvent.keyDown(menu, { key });
  expect([menu.isConnected, document.activeElement, picked]).toEqual([false, button, []]);
});

test("a toast ends after its time, which stands still while it has the pointer", () => {
  vi.useFakeTimers();
  const ended = vi.fn();
  render(<Toast text="Deleted" onEnd={ended} seconds={10} action={{ label: "Undo", onPick: vi.fn() }} />);
  act(() => void vi.advanceTimersByTime(9_000));
  fireEvent.pointerEnter(screen.getByRole("status"));
  act(() => void vi.advanceTimersByTime(60_000));
  expect(ended).not.toHaveBeenCalled();
  fireEvent.pointerLeave(screen.getByRole("status"));
  act(() => void vi.advanceTimersByTime(10_000));
  expect(ended).toHaveBeenCalledOnce();
});

test("what is urgent is an alert", () => {
  render(<><Announcer text="Saved" /><Announcer text="Waits" isUrgent /></>);
  expect(screen.getByRole("status").textContent).toBe("Saved");
  expect(screen.getByRole("alert").textContent).toBe("Waits");
});

test.each([
  [async () => {}, "Copied"],
  [async () => Promise.reject(new Error("not allowed")), "Not copied"],
])("a copy says what came of it", async (writeText, outcome) => {
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  render(<CopyButton text="x" what="code" />);
  fireEvent.click(screen.getByRole("button", { name: "Copy code" }));
  await screen.findByText(outcome);
  vi.unstubAllGlobals();
});

test("a button that is a picture copies the text of then, and says so too", async () => {
  const writeText = vi.fn(async () => {});
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  let text = "before";
  render(<CopyButton text={() => text} what="this answer" isIcon />);
  text = "now";
  fireEvent.click(screen.getByRole("button", { name: "Copy this answer" }));
  expect((await screen.findByText("Copied")).className).toBe("sr-only");
  expect(writeText.mock.calls).toEqual([["now"]]);
  vi.unstubAllGlobals();
});
