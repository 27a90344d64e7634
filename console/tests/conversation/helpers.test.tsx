import { fireEvent, render, screen } from "@testing-library/preact";
import { expect, test } from "vitest";
import { CallCard } from "../../src/conversation/Call";
import { byHelper } from "../../src/conversation/helpers";
import { SessionState, type CallItem } from "../../src/state/session";

function session(status: string): SessionState {
  const state = new SessionState("s");
  const call = (toolCallId: string, title: string, of?: string) =>
    state.apply({ sessionUpdate: "tool_call_update", toolCallId, title, status, kind: "read", ...(of && { _meta: { "dragoman/helperOf": of } }) }, 1);
  call("a", "Find the tests");
  call("b", "Find the docs");
  call("a1", "agent: Read x", "a");
  call("b1", "agent 2: Read y", "b");
  call("a2", "agent: Read z", "a");
  call("lost", "agent 3: Read q", "gone");
  return state;
}

const ids = (items: readonly { key: string }[] | undefined) => items?.map(({ key }) => key);

test("calls of helpers stand below the call that has started each, and one whose starter is gone for itself", () => {
  const { own, calls } = byHelper(session("completed").items);
  expect(ids(own)).toEqual(["call a", "call b", "call lost"]);
  expect([ids(calls.get("call a")), ids(calls.get("call b"))]).toEqual([["call a1", "call a2"], ["call b1"]]);
});

test.each([["in_progress", true], ["completed", false]])("a branch is open while its helper works: %s", (status, isOpen) => {
  const { own, calls } = byHelper(session(status).items);
  const { container } = render(<CallCard item={own[0] as CallItem} isAsked={false} calls={calls.get("call a")!} />);
  fireEvent.click(container.querySelector(".call > summary")!);
  const branch = container.querySelector<HTMLDetailsElement>(".helper-calls")!;
  expect([branch.open, branch.querySelectorAll("li .call").length]).toEqual([isOpen, isOpen ? 2 : 0]);
  fireEvent.click(screen.getByText("2 calls of this helper"));
  expect(branch.querySelectorAll("li .call").length).toBe(isOpen ? 0 : 2);
});
