// An editor on the official TypeScript SDK, unstable entry point, of the version on the command line. It plays a plan:
// calls with any params, prompts, answers to permissions and forms, and an MCP server that it lends (`$lent`).
import { McpOverAcpProvider } from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/mcp/core.js";
import { eachTask, startAgent, tell, tellError } from "./telling.mjs";

const version = Number(process.argv[2]);
const acp = await import(`../../../.peers/node_modules/@agentclientprotocol/sdk/dist/v${version}/unstable/acp.js`);
const { agent: asked, client: told } = acp.methods;
let step = {};
let sessionId = "";
let becomesIdle = () => {};

async function update({ params: { update } }) {
  tell("update", update);
  if (update.stopReason) becomesIdle();
}

async function permission({ params }) {
  tell("permission", params);
  const { optionId } = params.options.find((option) => option.kind === (step.permission ?? "reject_once"));
  return { outcome: { outcome: "selected", optionId } };
}

async function elicitation({ params }) {
  tell("elicitation", params);
  return step.form ? { action: "accept", content: step.form } : { action: step.action ?? "decline" };
}

const tool = { name: "echo", inputSchema: { type: "object", properties: { text: { type: "string" } } } };
const complete = { resultType: "complete", ttlMs: 0, cacheScope: "private" };

async function serve({ method, params, clientInfo, notify }) {
  tell("mcp", [method, clientInfo?.name]);
  switch (method) {
    case "server/discover": {
      const about = { capabilities: { tools: {} }, serverInfo: { name: "lent", version: "1" } };
      return { result: { ...complete, supportedVersions: ["2026-07-28"], ...about } };
    }
    case "tools/list":
      return { result: { ...complete, tools: [tool] } };
    case "tools/call":
      await notify("notifications/message", { level: "info", data: "working" });
      return { result: { resultType: "complete", content: [{ type: "text", text: `echo ${params.arguments.text}` }] } };
  }
  return { error: { code: -32601, message: "Method not found" } };
}

const hello =
  version === 1
    ? { clientCapabilities: { elicitation: { form: {}, url: {} } }, clientInfo: { name: "peer", version: "1" } }
    : { capabilities: { elicitation: { form: {}, url: {} } }, info: { name: "peer", version: "1" } };

function filled(value, lent) {
  if (value === "$lent") return lent;
  if (typeof value === "string") return value.replace("$session", sessionId);
  if (Array.isArray(value)) return value.map((one) => filled(one, lent));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, lent)]));
}

async function say(agent, text) {
  const idle = new Promise((resolve) => (becomesIdle = resolve));
  const prompt = [{ type: "text", text }];
  const accepted = await agent.request(asked.session.prompt, { sessionId, prompt });
  if (version === 2) await idle;
  tell("end", accepted);
}

async function talk(agent, { plan }, lent) {
  const greeted = await agent.request(asked.initialize, { protocolVersion: acp.PROTOCOL_VERSION, ...hello });
  tell("initialize", greeted);
  for (step of plan) {
    try {
      if (step.prompt) await say(agent, filled(step.prompt, lent));
      else {
        const result = await agent.request(step.call, filled(step.params, lent));
        sessionId = result?.sessionId ?? sessionId;
        tell(step.call, result);
      }
    } catch (error) {
      tellError(error);
    }
  }
}

await eachTask(async (task) => {
  const child = startAgent(task);
  const provider = new McpOverAcpProvider();
  const connection = acp
    .client({ name: "peer" })
    .onNotification(told.session.update, update)
    .onNotification(told.elicitation.complete, ({ params }) => tell("complete", params))
    .onRequest(told.session.requestPermission, permission)
    .onRequest(told.elicitation.create, elicitation)
    .onRequest(told.mcp.message, provider.handleRequest)
    .connect(acp.ndJsonStream(...child.streams));
  const lent = provider.registerServer(connection.agent, { name: "lent", handler: serve });
  await talk(connection.agent, task, lent.declaration);
  await child.end();
});
