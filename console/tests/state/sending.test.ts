import { expect, test } from "vitest";
import { sendPrompt, type PromptTarget, type Sending } from "../../src/state/sending";
import { RequestFailed } from "../../src/wire/failure";

const BLOCKS = [{ type: "text" as const, text: "more" }];
const BUSY = new RequestFailed({ code: -32600, message: "Busy", data: { reason: "busy" } });

/** A session whose turn runs, and what each request in a row is answered with. `stop`: its turn is stopped, not ended. */
function session(answers: unknown[], { isRunning = true, stop = false } = {}) {
  const seen: string[] = [];
  const target: PromptTarget & { isRunning: boolean; stops: number } = {
    id: "s", isRunning, stops: 0,
    async request(method, params) {
      seen.push(method + (params._meta ? ` ${params._meta.steering.idleBehavior}` : ""));
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
    async untilIdle() {
      seen.push("idle");
      if (stop) target.stops += 1;
      target.isRunning = false;
    },
    moved: (to: Sending) => void seen.push(to),
  };
  return { seen, target };
}

const STEERED = "_session/steering promptRequired";

test.each([
  ["goes at once where no turn runs", [{}], { isRunning: false }, true, false, ["session/prompt"]],
  ["is added to the turn", [{ outcome: "injected" }], {}, true, false, ["added", STEERED]],
  ["is a prompt where the turn has just ended", [{ outcome: "promptRequired" }, {}], {}, true, false, ["added", STEERED, "sent", "session/prompt"]],
  ["waits where it could not be added", [{ outcome: "failed" }, {}], {}, true, false, ["added", STEERED, "waiting", "idle", "sent", "session/prompt"]],
  ["waits where the agent does not know how", [new RequestFailed({ code: -32601 }), {}], {}, true, false, ["added", STEERED, "waiting", "idle", "sent", "session/prompt"]],
  ["waits where a person wants it to", [{}], {}, true, true, ["waiting", "idle", "sent", "session/prompt"]],
  ["waits for an agent that is busy", [BUSY, {}], {}, false, false, ["session/prompt", "waiting", "idle", "sent", "session/prompt"]],
])("a prompt %s", async (_, answers, more, steers, waits, expected) => {
  const { seen, target } = session(answers, more);
  await sendPrompt(target, BLOCKS, { steers, waits });
  expect(seen).toEqual(expected);
});

test.each([
  [[{ outcome: "failed" }], true, false],
  [[], true, true],
  [[BUSY], false, false],
])("what waits for a turn that is stopped is not sent: %#", async (answers, steers, waits) => {
  const { seen, target } = session(answers, { stop: true });
  await expect(sendPrompt(target, BLOCKS, { steers, waits })).rejects.toThrow("was not sent");
  expect(seen.at(-1)).toBe("idle");
});

test("words that the agent refuses are not sent in another way", async () => {
  const { seen, target } = session([new RequestFailed({ code: -32602, message: "No pictures" })]);
  await expect(sendPrompt(target, BLOCKS, { steers: true, waits: false })).rejects.toThrow("No pictures");
  expect(seen).toEqual(["added", STEERED]);
});
