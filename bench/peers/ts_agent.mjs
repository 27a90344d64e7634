// The bench's agent on the official TypeScript SDK, stable v1 entry point.
import { Readable, Writable } from "node:stream";
import * as acp from "../../.peers/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js";

const { agent: asked, client: told } = acp.methods;
const modes = { currentModeId: "a", availableModes: [{ id: "a", name: "A" }, { id: "b", name: "B" }] };

let sessions = 0;

async function turn({ params: { sessionId, prompt }, client }) {
  const [word, count, ...words] = prompt[0].text.split(" ");
  const send = (update) => client.notify(told.session.update, { sessionId, update });
  if (word === "big") {
    const newText = ("x".repeat(79) + "\n").repeat(Math.floor(Number(count) / 80));
    const content = [{ type: "diff", path: "/bench/file.py", newText }];
    await send({ sessionUpdate: "tool_call_update", toolCallId: "big", content });
  } else {
    const text = words.join(" ");
    for (let number = Number(count); number > 0; number--) {
      await send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    }
  }
  return { stopReason: "end_turn" };
}

acp
  .agent({ name: "bench" })
  .onRequest(asked.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: {},
    agentInfo: { name: "bench", version: "1" },
  }))
  .onRequest(asked.session.new, () => ({ sessionId: `session-${String(++sessions).padStart(5, "0")}`, modes }))
  .onRequest(asked.session.setMode, () => ({}))
  .onRequest("_bench/echo", (params) => params, () => ({}))
  .onRequest(asked.session.prompt, turn)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
