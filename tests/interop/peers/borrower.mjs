// An agent on the official TypeScript SDK that calls the MCP servers that its client lends: each prompt is a method.
import { Readable, Writable } from "node:stream";
import { McpOverAcpCaller } from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/mcp/core.js";

const version = Number(process.argv[2]);
const acp = await import(`../../../.peers/node_modules/@agentclientprotocol/sdk/dist/v${version}/unstable/acp.js`);
const { agent: asked, client: told } = acp.methods;
const mcp = new McpOverAcpCaller({ clientInfo: { name: "borrower", version: "1" } });
let serverId = "";
let turns = 0;

const hello =
  version === 1
    ? { agentCapabilities: { mcpCapabilities: { acp: true } }, agentInfo: { name: "borrower", version: "1" } }
    : { capabilities: { session: { mcp: { acp: {} } } }, info: { name: "borrower", version: "1" } };

async function turn(client, { sessionId, prompt }) {
  const [method, ...words] = prompt[0].text.split(" ");
  const heard = [];
  const onNotification = (note) => heard.push(note.method);
  const params = words.length ? { name: words[0], arguments: JSON.parse(words.slice(1).join(" ")) } : {};
  const outcome = await mcp
    .request(client, serverId, method, params, { onNotification })
    .catch(({ code, message }) => ({ failed: { code, message } }));
  const content = { type: "text", text: JSON.stringify({ ...outcome, heard }) };
  const update = { sessionUpdate: "agent_message_chunk", messageId: `m${turns}`, content };
  await client.notify(told.session.update, { sessionId, update });
}

async function prompt({ params, client }) {
  turns += 1;
  if (version === 1) {
    await turn(client, params);
    return { stopReason: "end_turn" };
  }
  const tell = (update) => client.notify(told.session.update, { sessionId: params.sessionId, update });
  const messageId = `p${turns}`;
  setTimeout(async () => {
    await tell({ sessionUpdate: "user_message", messageId, content: params.prompt });
    await tell({ sessionUpdate: "state_update", state: "running" });
    await turn(client, params);
    await tell({ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
  });
  return { messageId };
}

acp
  .agent({ name: "borrower" })
  .onRequest(asked.initialize, () => ({ protocolVersion: version, ...hello }))
  .onRequest(asked.session.new, ({ params }) => {
    serverId = params.mcpServers[0].serverId;
    return { sessionId: "sess_1" };
  })
  .onRequest(asked.session.prompt, prompt)
  .onNotification(asked.mcp.message, mcp.handleNotification)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
