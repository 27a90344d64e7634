import { expect, test } from "vitest";
import { SessionState, type CallItem, type MessageItem } from "../../src/state/session";

let number = 0;
const base64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** A session that was told this. */
function told(...updates: object[]): SessionState {
  const state = new SessionState("s", () => 1000);
  for (const update of updates) state.apply(update, ++number);
  return state;
}

const chunk = (messageId: string, text: string) => ({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text } });

test("pieces of a message become one text, by the id of the message", () => {
  const state = told(chunk("a", "Hel"), chunk("b", "x"), chunk("a", "lo"));
  expect(state.items.map((item) => (item as MessageItem).blocks)).toEqual([[{ type: "text", text: "Hello" }], [{ type: "text", text: "x" }]]);
});

test("an item that changes is another object, and its neighbours are the same", () => {
  const state = told(chunk("a", "one"), chunk("b", "two"));
  const [before, neighbour] = state.items;
  state.apply(chunk("a", " more"), ++number);
  expect(state.items[0]).not.toBe(before);
  expect(state.items[1]).toBe(neighbour);
});

test("what is absent stays, null clears, a value replaces", () => {
  const call = (fields: object) => ({ sessionUpdate: "tool_call_update", toolCallId: "c", ...fields });
  const state = told(call({ title: "Read", kind: "read", status: "pending" }), call({ status: "completed", title: null }));
  expect(state.call("c")).toEqual({ toolCallId: "c", kind: "read", status: "completed", title: undefined });
});

test("a session that is told again is the same", () => {
  const updates = [
    { sessionUpdate: "user_message", messageId: "u", content: [{ type: "text", text: "go" }] },
    { sessionUpdate: "tool_call_update", toolCallId: "c", title: "Run", content: [{ type: "terminal", terminalId: "t" }] },
    { sessionUpdate: "terminal_update", terminalId: "t", command: "ls", output: { data: base64("a\n") } },
    { sessionUpdate: "terminal_output_chunk", terminalId: "t", data: base64("b\n") },
    chunk("a", "Done."),
    { sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" },
  ];
  const state = told(...updates);
  const once = structuredClone(state.items);
  for (const update of updates) state.apply(update, ++number);
  expect(structuredClone(state.items)).toEqual([once[0], once[1], { ...once[2], blocks: [{ type: "text", text: "Done.Done." }] }]);
  state.clear();
  for (const update of updates) state.apply(update, ++number);
  expect(structuredClone(state.items)).toEqual(once);
});

test("the output of a command is shown by the call that names it, whichever came first", () => {
  const output = { sessionUpdate: "terminal_output_chunk", terminalId: "t", data: base64("out") };
  const call = { sessionUpdate: "tool_call_update", toolCallId: "c", content: [{ type: "terminal", terminalId: "t" }] };
  for (const updates of [[output, call], [call, output]]) {
    const [item] = told(...updates).items as CallItem[];
    expect(item!.terminals.get("t")!.text).toBe("out");
  }
});

test("a character that is cut between two pieces of output is whole", () => {
  const bytes = new TextEncoder().encode("é");
  const pieces = [...bytes].map((byte) => btoa(String.fromCharCode(byte)));
  const state = told(...pieces.map((data) => ({ sessionUpdate: "terminal_output_chunk", terminalId: "t", data })));
  expect(state.terminal("t")!.text).toBe("é");
});

test("a thought is open until something else begins, and everything is closed when the turn ends", () => {
  const state = told(
    { sessionUpdate: "state_update", state: "running" },
    { sessionUpdate: "agent_thought_chunk", messageId: "t", content: { type: "text", text: "Hm." } },
  );
  const open = () => state.items.map((item) => (item as MessageItem).isOpen);
  expect(open()).toEqual([true]);
  state.apply(chunk("a", "So"), ++number);
  expect(open()).toEqual([false, true]);
  state.apply({ sessionUpdate: "state_update", state: "idle" }, ++number);
  expect(open()).toEqual([false, false]);
});

test("options of an older message do not replace newer ones", () => {
  const option = (currentValue: string) => [{ configId: "mode", name: "Mode", type: "select", currentValue }];
  const state = told();
  state.setOptions(option("plan"), 7);
  state.setOptions(option("ask"), 5);
  expect(state.options[0]!.currentValue).toBe("plan");
});

test("a session keeps a bounded number of items, and says that it has let some go", () => {
  const state = told();
  for (let count = 0; count < 20_001; count += 1) state.apply(chunk(`m${count}`, "x"), ++number);
  expect(state.items.length).toBeLessThanOrEqual(20_000);
  expect(state.isShortened).toBe(true);
  state.apply(chunk("m20000", "y"), ++number);
  expect((state.items.at(-1) as MessageItem).blocks).toEqual([{ type: "text", text: "xy" }]);
});

test("a cost that is absent stays, and how a turn ended is told in words", () => {
  const state = told(
    { sessionUpdate: "usage_update", used: 1, size: 10, cost: { amount: 2, currency: "USD" } },
    { sessionUpdate: "usage_update", used: 3, size: 10 },
    { sessionUpdate: "state_update", state: "idle", error: { code: -32603, message: "Internal error", data: { details: "no space" } } },
  );
  expect(state.context).toMatchObject({ used: 3, cost: { amount: 2 } });
  expect(state.items).toMatchObject([{ type: "notice", severity: "error", title: "Internal error: no space", isTurnFailure: true }]);
});

test("a command runs in the background when its call is over and it is not", () => {
  const call = (status: string) => ({ sessionUpdate: "tool_call_update", toolCallId: "c", status, content: [{ type: "terminal", terminalId: "t" }] });
  const state = told(call("in_progress"), { sessionUpdate: "terminal_update", terminalId: "t", command: "npm run dev", capabilities: { cancel: {} } });
  expect(state.backgroundCommands).toEqual([]);
  state.apply(call("completed"), ++number);
  expect(state.backgroundCommands).toMatchObject([{ command: "npm run dev", canCancel: true }]);
  state.apply({ sessionUpdate: "terminal_update", terminalId: "t", exitStatus: { exitCode: 0 } }, ++number);
  expect(state.backgroundCommands).toEqual([]);
});

test("a helper is known by its session, with what is said of it last", () => {
  const helper = (fields: object) => ({ sessionUpdate: "subagent_update", sessionId: "h", ...fields });
  const state = told(helper({ title: "Look around", state: { state: "running" } }), helper({ description: "in src" }), helper({ state: { state: "idle" } }));
  expect([...state.subagents.values()]).toEqual([{ sessionId: "h", title: "Look around", description: "in src", state: "idle" }]);
});
