// A client on the official TypeScript SDK, the draft of v2; unstable, or it would not see a turn's usage.
import * as acp from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/v2/unstable/acp.js";
import { eachTask, startAgent, tell, tellError } from "./telling.mjs";

const { agent: asked, client: told } = acp.methods;
let step = {};
let becomesIdle = () => {};

async function update({ params: { sessionId, update }, agent }) {
  tell("update", update);
  if (update.stopReason) becomesIdle(); // a session that was loaded is idle too, and no turn of ours has ended
  if (update.sessionUpdate === "agent_message_chunk" && update.content.text === step.cancel_at) {
    await agent.notify(asked.session.cancel, { sessionId });
  }
}

async function permission({ params: { sessionId, title, subject, options }, agent }) {
  tell("permission", { title, subject, options: options.map((option) => option.kind) });
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
    capabilities: {},
    info: { name: "peer", version: "1" },
  });
  tell("initialize", { protocolVersion: hello.protocolVersion, name: hello.info.name });
  const { load } = plan[0];
  if (load) plan.shift();
  const session = load
    ? await agent.request(asked.session.resume, { cwd, sessionId: load, replayFrom: { type: "start" } })
    : await agent.request(asked.session.new, { cwd });
  tell("session", session);
  const sessionId = load ?? session.sessionId;
  for (step of plan) {
    const idle = new Promise((resolve) => (becomesIdle = resolve));
    try {
      if (step.call) await agent.request(step.call, {});
      else {
        const prompt = [{ type: "text", text: step.prompt }];
        const accepted = await agent.request(asked.session.prompt, { sessionId, prompt });
        await idle;
        tell("end", accepted);
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
