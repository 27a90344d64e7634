// An agent on the official TypeScript SDK, the draft of v2. What it does is the prompt's first word.
// A new session takes the place of the one before it.
import { Readable, Writable } from "node:stream";
import * as acp from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/v2/stable/acp.js";

const { agent: asked, client: told } = acp.methods;
const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

let sessions = 0;
let sessionId = "";
let cwd = "";
let mode = "";
let turns = 0;
let cancel = () => {};

const tell = (client, sessionUpdate, fields) =>
  client.notify(told.session.update, { sessionId, update: { sessionUpdate, ...fields } });
const say = (client, text) =>
  tell(client, "agent_message_chunk", { messageId: `answer-${turns}`, content: { type: "text", text } });
const configOptions = () => [
  {
    type: "select",
    configId: "mode",
    name: "Mode",
    category: "mode",
    currentValue: mode,
    options: [{ value: "ask", name: "Ask" }, { value: "code", name: "Code" }],
  },
];

const doing = {
  async greet(client) {
    await tell(client, "agent_thought_chunk", { messageId: "thought-1", content: { type: "text", text: "Hm." } });
    await say(client, "Hello. ");
    await say(client, "How are you?");
    const entries = [{ content: "Look", priority: "high", status: "in_progress" }];
    await tell(client, "plan_update", { plan: { type: "items", planId: "main", entries } });
    const named = { toolCallId: "look", title: "Look around" };
    await tell(client, "tool_call_update", { ...named, kind: "read", status: "pending" });
    await tell(client, "state_update", { state: "requires_action" });
    const { outcome } = await client.request(told.session.requestPermission, {
      sessionId,
      title: "May I look around?",
      options,
      subject: { type: "tool_call", toolCall: named },
    });
    await tell(client, "state_update", { state: "running" });
    const content = [{ type: "content", content: { type: "text", text: "All is well." } }];
    const end = outcome.optionId === "yes" ? { status: "completed", content } : { status: "failed" };
    await tell(client, "tool_call_update", { toolCallId: "look", ...end });
  },
  async burst(client) {
    for (let left = 1000; left > 0; left--) await say(client, "x");
  },
  async terminal(client) {
    await tell(client, "terminal_update", { terminalId: "term", command: "echo hello", cwd });
    const content = [{ type: "terminal", terminalId: "term" }];
    const opening = { toolCallId: "run", title: "echo hello", kind: "execute", status: "in_progress", content };
    await tell(client, "tool_call_update", opening);
    await tell(client, "terminal_output_chunk", { terminalId: "term", data: btoa("hello\n") });
    await tell(client, "terminal_update", { terminalId: "term", exitStatus: { exitCode: 0 } });
    await tell(client, "tool_call_update", { toolCallId: "run", status: "completed" });
  },
  async mode(client) {
    await say(client, mode);
  },
  async wait(client) {
    const cancelled = new Promise((resolve) => (cancel = resolve));
    await say(client, "waiting");
    await cancelled;
    return { stopReason: "cancelled" };
  },
  async fail(client) {
    await say(client, "Oh.");
    return { stopReason: "error", error: { code: -32603, message: "It broke", data: { reason: "server" } } };
  },
  async die(client) {
    await say(client, "last words");
    process.exit(3);
  },
};

async function play(client, messageId, content) {
  await tell(client, "user_message", { messageId, content });
  await tell(client, "state_update", { state: "running" });
  const [word, ...rest] = content[0].text.split(" ");
  const end = (await doing[word](client, ...rest)) ?? { stopReason: "end_turn" };
  await tell(client, "state_update", { state: "idle", ...end });
}

const connection = acp
  .agent({ name: "peer" })
  .onRequest(asked.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "peer", version: "1" },
    capabilities: { session: {} },
  }))
  .onRequest(asked.session.new, ({ params }) => {
    sessions += 1;
    sessionId = `session-${sessions}`;
    cwd = params.cwd;
    mode = "ask";
    return { sessionId, configOptions: configOptions() };
  })
  .onRequest(asked.session.setConfigOption, ({ params }) => {
    mode = params.value;
    return { configOptions: configOptions() };
  })
  .onNotification(asked.session.cancel, () => cancel())
  .onRequest(asked.session.prompt, ({ params: { prompt } }) => {
    turns += 1;
    const messageId = `user-${turns}`;
    setImmediate(() => play(connection.client, messageId, prompt)); // a turn outlives the request that began it
    return { messageId };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
