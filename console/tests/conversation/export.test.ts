import { expect, test } from "vitest";
import { asMarkdown } from "../../src/conversation/export";
import { SessionState } from "../../src/state/session";

test("a conversation is written with what was asked, said, changed and printed, and fences hold", () => {
  const state = new SessionState("s");
  state.title = "A title";
  const updates = [
    { sessionUpdate: "user_message", messageId: "u", content: [{ type: "text", text: "go" }, { type: "image", mimeType: "image/png", data: "" }] },
    { sessionUpdate: "agent_thought", messageId: "t", content: [{ type: "text", text: "secret" }] },
    { sessionUpdate: "tool_call_update", toolCallId: "c", title: "Run", status: "completed", content: [{ type: "terminal", terminalId: "t" }] },
    { sessionUpdate: "terminal_output_chunk", terminalId: "t", data: btoa("\u001b[31mred\u001b[0m ```\n") },
    { sessionUpdate: "agent_message", messageId: "a", content: [{ type: "text", text: "**Done.**" }] },
  ];
  updates.forEach((update, index) => state.apply(update, index + 1));
  expect(asMarkdown(state)).toBe("# A title\n\n## You\n\ngo\n[image]\n\n**Run** completed\n\n````\nred ```\n````\n\n**Done.**\n");
});
