import { act, fireEvent, render } from "@testing-library/preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Context, type AppContext } from "../../src/app/context";
import { QuestionPanel, STILL } from "../../src/conversation/Question";
import { SessionStore } from "../../src/state/store";

const me = { name: "ada", scopes: ["read", "prompt"], folder: "/w", version: "1" };
const YES = { optionId: "yes", name: "Yes", kind: "allow_once" };

const FRAME = 20; // milliseconds in which there is one

// There is a mouse.
globalThis.matchMedia = () => ({ matches: false }) as MediaQueryList;

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.useRealTimers();
  document.body.replaceChildren();
});

/** A panel in which this is asked; `answers` has what was answered. */
function asked(params: object, method = "session/request_permission") {
  const store = new SessionStore(me, "/acp", { loggedOut: () => {}, shown: () => {} });
  const answers: any[] = [];
  vi.spyOn(store, "answer").mockImplementation((id, result) => {
    if (!store.questions.delete(id)) return false;
    store.changed();
    answers.push(result);
    return true;
  });
  const prompt = document.body.appendChild(document.createElement("textarea"));
  prompt.id = "prompt";
  const { container } = render(
    <Context.Provider value={{ me, store } as unknown as AppContext}>
      <QuestionPanel />
    </Context.Provider>,
  );
  act(() => {
    store.ask(1, method, params);
    vi.advanceTimersByTime(FRAME);
  });
  const press = (more: object = {}) => act(() => void fireEvent.keyDown(document.activeElement ?? document.body, { code: "Digit1", ...more }));
  return { store, answers, prompt, box: container.querySelector("#question")!, press };
}

const awake = () => act(() => void vi.advanceTimersByTime(STILL));

test("a question is not answered by what was meant for something else", () => {
  const { answers, box, press, prompt } = asked({ title: "May I?", options: [YES] });
  fireEvent.click(box.querySelector("button")!);
  press({ altKey: true });
  expect(answers).toEqual([]); // it was too early
  awake();
  prompt.focus();
  press();
  expect(answers).toEqual([]); // a digit that is written
  press({ altKey: true });
  press({ altKey: true });
  expect(answers).toEqual([{ outcome: { outcome: "selected", optionId: "yes" } }]);
});

test("an option is named by what it does, whatever the agent calls it", () => {
  const { box } = asked({
    title: "May I?",
    options: [
      { optionId: "a", name: "No", kind: "allow_always" },
      { optionId: "b", name: "Yes", kind: "reject_once" },
      { optionId: "c", name: "Yes", kind: "bless" },
    ],
  });
  const shown = [...box.querySelectorAll("button")].map((one) => [one.className, one.textContent]);
  expect(shown).toEqual([
    ["button choice allow", "1 ✓✓ No (yes, always)"],
    ["button choice reject", "2 ✕ Yes (no)"],
    ["button choice other", "3 ? Yes (something else)"],
  ]);
});

test("a question shows what a diff does not tell", () => {
  // A patch may name another file than the changes beside it, and an input may hold more than a diff.
  const patch = "--- a/src/a.py\n+++ /etc/passwd\n@@ -1 +1,2 @@\n-x y\n+rm\n+/etc/motd\n";
  const toolCall = {
    toolCallId: "c",
    locations: [{ path: "/w/src/a.py" }, { path: "/w/other" }],
    content: [{ type: "diff", changes: [{ operation: "modify", path: "/w/src/a.py" }], patch: { text: patch } }, { type: "warp", to: "/dev" }],
    rawInput: { file_path: "/w/src/a.py", old_string: "x y", replace_all: false, shellCommand: "rm", then: "go on", path: "/etc/motd" },
    beside: { it: "/etc/hosts" },
  };
  const { box } = asked({ title: "May I?", options: [YES], subject: { type: "tool_call", toolCall } });
  const shown = box.querySelector(".subject")!.textContent!;
  expect(shown).toContain('"path": "/etc/motd"');
  expect(shown).toContain('"it": "/etc/hosts"');
  for (const told of ["modify /w/src/a.py", "+++ /etc/passwd", "/w/other", "shellCommand", "go on", "warp", "/dev"]) {
    expect(shown).toContain(told);
  }
  for (const told of ["--- a/src/a.py", "old_string", "replace_all"]) expect(shown).not.toContain(told);
});

test("a text that is in no changed line is shown, whatever its field is called", () => {
  const diff = { type: "diff", changes: [{ path: "/w/a" }], patch: { text: "@@ -1 +1 @@\n same text\n-a one b\n+a two b\n" } };
  const shownOf = (rawInput: object) => {
    const toolCall = { toolCallId: "c", content: [diff], rawInput };
    const { box } = asked({ title: "May I?", options: [YES], subject: { type: "tool_call", toolCall } });
    return [...box.querySelectorAll(".subject > pre")].map((one) => one.textContent).join("");
  };
  expect(shownOf({ path: "/w/a", old_string: "one", new_string: "two" })).toBe("");
  for (const rawInput of [
    { new_string: "three" }, { new_string: "same" }, { content: "two" }, { path: "b" }, { path: "a" }, { other: "two" },
  ]) {
    expect(JSON.parse(shownOf(rawInput))).toEqual(rawInput);
  }
});

test("words with a no are sent with it, also by Enter, and a yes takes none along", () => {
  const options = [YES, { optionId: "no", name: "No", kind: "reject_once" }];
  const write = (box: Element) => {
    const why = box.querySelector<HTMLInputElement>(".why")!;
    why.value = " use pnpm ";
    return why;
  };
  const by = (answer: (box: Element) => void) => {
    const { answers, box } = asked({ title: "May I?", options });
    awake();
    answer(box);
    return answers;
  };
  const no = { outcome: { outcome: "selected", optionId: "no" }, _meta: { "dragoman/feedback": "use pnpm" } };
  expect(by((box) => (write(box), fireEvent.click(box.querySelector("[data-option=no]")!)))).toEqual([no]);
  expect(by((box) => fireEvent.keyDown(write(box), { key: "Enter" }))).toEqual([no]);
  expect(by((box) => (write(box), fireEvent.click(box.querySelector("[data-option=yes]")!)))).toEqual([
    { outcome: { outcome: "selected", optionId: "yes" } },
  ]);
});

test("after the last answer the prompt has the focus", () => {
  const { box, prompt } = asked({ title: "May I?", options: [YES] });
  expect(document.activeElement).toBe(box);
  awake();
  act(() => {
    fireEvent.click(box.querySelector("button")!);
    vi.advanceTimersByTime(FRAME);
  });
  expect(document.activeElement).toBe(prompt);
  expect((box as HTMLElement).hidden).toBe(true);
});

test("a form is answered by the types of its fields", () => {
  const properties = {
    colour: { type: "string", oneOf: [{ const: "r", title: "Red" }, { const: "b", title: "Blue" }], default: "b" },
    count: { type: "integer", default: 3 },
    sure: { type: "boolean", default: true },
    note: { type: "string" },
  };
  const { answers, box } = asked({ message: "Which?", mode: "form", requestedSchema: { properties, required: ["colour"] } }, "elicitation/create");
  awake();
  fireEvent.submit(box.querySelector("form")!);
  expect(answers).toEqual([{ action: "accept", content: { colour: "b", count: 3, sure: true } }]);
});
