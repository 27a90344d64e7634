// An agent on the official TypeScript SDK, stable v1 entry point. What it does is the prompt's first word.
// A new session takes the place of the one before it.
import { Readable, Writable } from "node:stream";
import * as acp from "../../../.peers/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js";

const { agent: asked, client: told } = acp.methods;
const availableModes = [{ id: "ask", name: "Ask" }, { id: "code", name: "Code" }];
const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

let sessions = 0;
let sessionId = "";
let cwd = "";
let currentModeId = "";
let cancel = () => {};

const tell = (client, update) => client.notify(told.session.update, { sessionId, update });
const chunk = (text, sessionUpdate = "agent_message_chunk") => ({ sessionUpdate, content: { type: "text", text } });

const doing = {
  async greet(client) {
    await tell(client, chunk("Hm.", "agent_thought_chunk"));
    await tell(client, chunk("Hello. "));
    await tell(client, chunk("How are you?"));
    const entries = [{ content: "Look", priority: "high", status: "in_progress" }];
    await tell(client, { sessionUpdate: "plan", entries });
    const opening = { sessionUpdate: "tool_call", toolCallId: "look", title: "Look around", kind: "read" };
    await tell(client, { ...opening, status: "pending" });
    const toolCall = { toolCallId: "look", title: "Look around" };
    const { outcome } = await client.request(told.session.requestPermission, { sessionId, toolCall, options });
    const content = [{ type: "content", content: { type: "text", text: "All is well." } }];
    const end = outcome.optionId === "yes" ? { status: "completed", content } : { status: "failed" };
    await tell(client, { sessionUpdate: "tool_call_update", toolCallId: "look", ...end });
  },
  async burst(client) {
    for (let left = 1000; left > 0; left--) await tell(client, chunk("x"));
  },
  async files(client, path) {
    const { content } = await client.request(told.fs.readTextFile, { sessionId, path, line: 1, limit: 10 });
    await client.request(told.fs.writeTextFile, { sessionId, path: path + ".new", content: content.toUpperCase() });
    await tell(client, chunk(content));
  },
  async terminal(client) {
    const wanted = { sessionId, command: "echo", args: ["hello"], cwd, outputByteLimit: 1000 };
    const { terminalId } = await client.request(told.terminal.create, wanted);
    const opening = { sessionUpdate: "tool_call", toolCallId: "run", title: "echo hello", kind: "execute" };
    await tell(client, { ...opening, status: "in_progress", content: [{ type: "terminal", terminalId }] });
    const { exitCode } = await client.request(told.terminal.waitForExit, { sessionId, terminalId });
    const { output } = await client.request(told.terminal.output, { sessionId, terminalId });
    await client.request(told.terminal.kill, { sessionId, terminalId });
    await client.request(told.terminal.release, { sessionId, terminalId });
    await tell(client, { sessionUpdate: "tool_call_update", toolCallId: "run", status: "completed" });
    await tell(client, chunk(`${output} ${exitCode}`));
  },
  async mode(client) {
    await tell(client, chunk(currentModeId));
  },
  async wait(client) {
    const cancelled = new Promise((resolve) => (cancel = resolve));
    await tell(client, chunk("waiting"));
    await cancelled;
    return "cancelled";
  },
  async fail(client) {
    await tell(client, chunk("Oh."));
    throw new acp.RequestError(-32603, "It broke", { reason: "server" });
  },
  async die(client) {
    await tell(client, chunk("last words"));
    process.exit(3);
  },
};

acp
  .agent({ name: "peer" })
  .onRequest(asked.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: {},
    agentInfo: { name: "peer", version: "1" },
  }))
  .onRequest(asked.session.new, ({ params }) => {
    sessions += 1;
    sessionId = `session-${sessions}`;
    cwd = params.cwd;
    currentModeId = "ask";
    return { sessionId, modes: { currentModeId, availableModes } };
  })
  .onRequest(asked.session.setMode, async ({ params, client }) => {
    currentModeId = params.modeId;
    await tell(client, { sessionUpdate: "current_mode_update", currentModeId });
    return {};
  })
  .onNotification(asked.session.cancel, () => cancel())
  .onRequest(asked.session.prompt, async ({ params: { prompt }, client }) => {
    const [word, ...rest] = prompt[0].text.split(" ");
    return { stopReason: (await doing[word](client, ...rest)) ?? "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
