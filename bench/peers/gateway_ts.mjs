// The official TypeScript SDK's own HTTP server: `PORT CHUNKS PAUSE`. Node's clock is the one Python calls monotonic.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { AcpServer } from "../../.peers/node_modules/@agentclientprotocol/sdk/dist/transports/server.js";
import { createNodeHttpHandler } from "../../.peers/node_modules/@agentclientprotocol/sdk/dist/transports/node-adapter.js";
import * as acp from "../../.peers/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js";

const [port, chunks, pause] = process.argv.slice(2).map(Number);
const { agent: asked, client: told } = acp.methods;

async function turn({ params: { sessionId }, client }) {
  for (let number = 0; number < chunks; number++) {
    const content = { type: "text", text: String(process.hrtime.bigint()) };
    await client.notify(told.session.update, {
      sessionId,
      update: { sessionUpdate: "agent_message_chunk", content },
    });
    await sleep(pause * 1000);
  }
  return { stopReason: "end_turn" };
}

const agent = acp
  .agent({ name: "bench" })
  .onRequest(asked.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest(asked.session.new, () => ({ sessionId: randomUUID() }))
  .onRequest(asked.session.prompt, turn);
createServer(createNodeHttpHandler(new AcpServer({ agent }))).listen(port, "127.0.0.1");
