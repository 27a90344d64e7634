import { render } from "@testing-library/preact";
import { expect, test } from "vitest";
import { MessageView } from "../../src/conversation/Message";
import type { MessageItem } from "../../src/state/session";

test("a prompt is shown as it is written, and what would not show is spelled out", () => {
  const item = { type: "user", id: "u", isOpen: false, blocks: [{ type: "text", text: "run a\u202eb **now**\n  <b>" }] } as unknown as MessageItem;
  const { container } = render(<MessageView item={item} rewind={null} />);
  expect(container.querySelector(".text")!.textContent).toBe("run a⟨U+202E⟩b **now**\n  <b>");
});
