// A remote client on the official TypeScript SDK. `VERSION CWD URL...`, the token in PEER_TOKEN.
// At every address it has a turn in a new session; then it comes anew, finds the session again and has another turn.
import { createHttpStream } from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/transports/http-stream.js";
import { createWebSocketStream } from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/transports/ws-stream.js";

const [version, cwd, ...urls] = process.argv.slice(2);
const root = "../../../.peers/node_modules/@agentclientprotocol/sdk/dist";
const acp = await import(version === "1" ? `${root}/v1/stable/acp.js` : `${root}/v2/unstable/acp.js`);
const { agent: asked, client: told } = acp.methods;
const headers = { Authorization: `Bearer ${process.env.PEER_TOKEN}` };

function tell(kind, value) {
  process.stdout.write(JSON.stringify([kind, value]) + "\n");
}

// node's own WebSocket takes headers in its second argument.
class Socket {
  constructor(address, _protocols, options) {
    return new WebSocket(address, { headers: options.headers });
  }
}

async function talk(agent, load, idle) {
  const info = { name: "peer", version: "1" };
  const hello = await agent.request(asked.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    ...(version === "1" ? { clientCapabilities: {}, clientInfo: info } : { capabilities: {}, info }),
  });
  tell("initialize", hello.protocolVersion);
  let sessionId = load;
  if (load && version === "1") await agent.request(asked.session.load, { cwd, sessionId: load, mcpServers: [] });
  else if (load) await agent.request(asked.session.resume, { cwd, sessionId: load, replayFrom: { type: "start" } });
  else ({ sessionId } = await agent.request(asked.session.new, { cwd, mcpServers: [] }));
  tell("session", sessionId);
  const answer = await agent.request(asked.session.prompt, { sessionId, prompt: [{ type: "text", text: "go" }] });
  tell("end", version === "1" ? answer.stopReason : await idle);
  return sessionId;
}

async function connected(url, load) {
  const stream = url.startsWith("ws")
    ? createWebSocketStream(url, { headers, WebSocket: Socket })
    : createHttpStream(url, { headers });
  let becomesIdle;
  const idle = new Promise((resolve) => (becomesIdle = resolve));
  return await acp
    .client({ name: "peer" })
    .onNotification(told.session.update, ({ params: { update } }) => {
      tell("update", update);
      if (update.stopReason) becomesIdle(update.stopReason);
    })
    .onRequest(told.session.requestPermission, ({ params: { options } }) => {
      tell("permission", options.map((option) => option.kind));
      return { outcome: { outcome: "selected", optionId: options[0].optionId } };
    })
    .connectWith(stream, (agent) => talk(agent, load, idle));
}

for (const url of urls) await connected(url, await connected(url));
process.exit(0);
