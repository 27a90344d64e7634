import { render } from "@testing-library/preact";
import { expect, test } from "vitest";
import { PlanView } from "../../src/conversation/Plan";

test("a step has no class that the agent chooses", () => {
  const entries = [{ content: "a", status: "completed choice allow" }, { content: "b", status: "in_progress" }];
  const { container } = render(<PlanView plan={{ planId: "p", type: "items", entries }} />);
  expect([...container.querySelectorAll("li")].map((one) => one.className)).toEqual(["step", "step in_progress"]);
});
