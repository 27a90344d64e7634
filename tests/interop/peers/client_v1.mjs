// A client on the official TypeScript SDK, stable v1 entry point.
import * as acp from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js";
import { eachTask, startAgent, tell, tellError } from "./telling.mjs";

const { agent: asked, client: told } = acp.methods;
let step = {};

async function update({ params: { sessionId, update }, agent }) {
  tell("update", update);
  if (update.sessionUpdate === "agent_message_chunk" && update.content.text === step.cancel_at) {
    await agent.notify(asked.session.cancel, { sessionId });
  }
}

async function permission({ params: { sessionId, toolCall, options }, agent }) {
  tell("permission", { toolCall, options: options.map((option) => option.kind) });
  if (step.permission === "cancel") {
    await agent.notify(asked.session.cancel, { sessionId });
    return { outcome: { outcome: "cancelled" } };
  }
  const { optionId } = options.find((option) => option.kind === step.permission);
  return { outcome: { outcome: "selected", optionId } };
}

async function talk(agent, { plan, cwd }) {
  const hello = await agent.request(asked.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "peer", version: "1" },
  });
  tell("initialize", { protocolVersion: hello.protocolVersion, name: hello.agentInfo?.name });
  const { load } = plan[0];
  if (load) plan.shift();
  const session = load
    ? await agent.request(asked.session.load, { cwd, sessionId: load, mcpServers: [] })
    : await agent.request(asked.session.new, { cwd, mcpServers: [] });
  tell("session", session);
  const sessionId = load ?? session.sessionId;
  for (step of plan) {
    try {
      if (step.call) await agent.request(step.call, {});
      else {
        const prompt = [{ type: "text", text: step.prompt }];
        tell("end", await agent.request(asked.session.prompt, { sessionId, prompt }));
      }
    } catch (error) {
      tellError(error);
    }
  }
}

await eachTask(async (task) => {
  const child = startAgent(task);
  await acp
    .client({ name: "peer" })
    .onNotification(told.session.update, update)
    .onRequest(told.session.requestPermission, permission)
    .connectWith(acp.ndJsonStream(...child.streams), (agent) => talk(agent, task));
  await child.end();
});
