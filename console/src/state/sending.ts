// How a prompt comes to the agent: at once where no turn runs; into the turn that runs, where the agent lets itself be
// steered (`_session/steering`); else when the turn is over. Knows nothing of the screen or of the wire.

import { RequestFailed } from "../wire/failure";
import type { ContentBlock } from "./types";

const BUSY_ATTEMPTS = 100; // of a prompt that an agent does not take while it works
const UNKNOWN_METHOD = -32601;
const STOPPED = "The turn was stopped, so what waited for its end was not sent.";

/** Where a prompt is that is not part of the conversation yet. */
export type Sending = "sent" | "added" | "waiting";

/** The session that a prompt is for. */
export interface PromptTarget {
  readonly id: string;
  readonly isRunning: boolean;
  /** How often a person has stopped a turn: what waits is not sent then. */
  readonly stops: number;
  request(method: string, params: Record<string, any>): Promise<any>;
  /** Wait until the turn is over; a moment where none is known to run. */
  untilIdle(): Promise<void>;
  /** The prompt is somewhere else now. */
  moved(to: Sending): void;
}

export interface Wish {
  /** The agent says that it takes words for a turn that runs. */
  steers: boolean;
  /** The person wants them to wait for its end. */
  waits: boolean;
}

/** Send a prompt; resolves when the agent has it. */
export async function sendPrompt(to: PromptTarget, prompt: readonly ContentBlock[], { steers, waits }: Wish): Promise<void> {
  const { stops } = to;
  const checkStops = () => {
    if (to.stops !== stops) throw new Error(STOPPED);
  };
  const wait = async () => {
    to.moved("waiting");
    await to.untilIdle();
    checkStops();
    to.moved("sent");
  };
  const params = { sessionId: to.id, prompt };
  if (to.isRunning && waits) await wait();
  else if (to.isRunning && steers) {
    to.moved("added");
    const outcome = await steer(to, params);
    if (outcome === "injected" || outcome === "startedNewTurn") return;
    checkStops();
    if (outcome !== "promptRequired") await wait();
    else to.moved("sent");
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await to.request("session/prompt", params);
    } catch (error) {
      const isBusy = error instanceof RequestFailed && error.reason === "busy";
      if (!isBusy || attempt === BUSY_ATTEMPTS) throw error;
      await wait();
    }
  }
}

/** Add words to the turn that runs, and begin none of their own: what became of them. */
async function steer(to: PromptTarget, params: object): Promise<string> {
  const meta = { steering: { idleBehavior: "promptRequired" } };
  try {
    return (await to.request("_session/steering", { ...params, _meta: meta })).outcome;
  } catch (error) {
    if (error instanceof RequestFailed && error.code === UNKNOWN_METHOD) return "failed";
    throw error;
  }
}
