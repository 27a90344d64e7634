// An agent behind the official TypeScript SDK's own HTTP server. `PORT`. It has no WebSockets without a library.
import { createServer } from "node:http";
import { AcpServer } from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/transports/server.js";
import { createNodeHttpHandler } from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/transports/node-adapter.js";
import * as acp from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js";

const { agent: asked, client: told } = acp.methods;
const sessionId = "session-1";
const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];

async function prompt({ client }) {
  const say = (text) =>
    client.notify(told.session.update, {
      sessionId,
      update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
    });
  await say("one ");
  await say("two ");
  const toolCall = { toolCallId: "call" };
  const { outcome } = await client.request(told.session.requestPermission, { sessionId, toolCall, options });
  await say(`allowed ${outcome.outcome === "selected" ? "True" : "False"}`);
  return { stopReason: "end_turn" };
}

const agent = acp
  .agent({ name: "peer" })
  .onRequest(asked.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest(asked.session.new, () => ({ sessionId }))
  .onRequest(asked.session.prompt, prompt);
createServer(createNodeHttpHandler(new AcpServer({ agent }))).listen(Number(process.argv[2]), "127.0.0.1");
