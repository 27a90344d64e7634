// The bench's client on the official TypeScript SDK: SCENARIO COUNT TEXT -- AGENT..., one JSON object on stdout.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "../../.peers/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js";

const { agent: asked, client: told } = acp.methods;
const [scenario, countText, text, , command, ...args] = process.argv.slice(2);
const count = Number(countText);
const expected = scenario === "big" ? 1 : count;

let seen = 0;
let allSeen;
const finished = new Promise((resolve) => (allSeen = resolve));

function percentiles(taken) {
  const ordered = Float64Array.from(taken).sort();
  const sum = ordered.reduce((total, each) => total + each, 0);
  return {
    p50_us: ordered[Math.floor(ordered.length / 2)] * 1e3,
    p99_us: ordered[Math.floor((ordered.length * 99) / 100)] * 1e3,
    per_second: ordered.length / (sum / 1e3),
  };
}

async function oneByOne(ask) {
  const taken = [];
  for (let number = 0; number < count; number++) {
    const before = performance.now();
    await ask();
    taken.push(performance.now() - before);
  }
  return percentiles(taken);
}

async function inFlight(ask) {
  const width = 64;
  const share = Math.floor(count / width);
  const before = performance.now();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let number = 0; number < share; number++) await ask();
    }),
  );
  return { per_second: (share * width) / ((performance.now() - before) / 1e3) };
}

async function turn(agent, sessionId) {
  const cpuBefore = process.cpuUsage();
  const before = performance.now();
  const prompt = [{ type: "text", text: `${scenario} ${count} ${text}` }];
  // The prompt may resolve before the last updates were handled, so both are awaited.
  await Promise.all([agent.request(asked.session.prompt, { sessionId, prompt }), finished]);
  const seconds = (performance.now() - before) / 1e3;
  const cpu = process.cpuUsage(cpuBefore);
  return { seconds, cpu: (cpu.user + cpu.system) / 1e6, seen };
}

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
await acp
  .client({ name: "bench" })
  .onNotification(told.session.update, () => {
    seen += 1;
    if (seen === expected) allSeen();
  })
  .connectWith(
    acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)),
    async (agent) => {
      await agent.request(asked.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
      const { sessionId } = await agent.request(asked.session.new, { cwd: process.cwd(), mcpServers: [] });
      const setMode = () => agent.request(asked.session.setMode, { sessionId, modeId: "b" });
      const echo = () => agent.request("_bench/echo", {});
      const outcome =
        scenario === "sequential"
          ? await oneByOne(setMode)
          : scenario === "echo"
            ? await oneByOne(echo)
            : scenario === "inflight"
              ? await inFlight(setMode)
              : await turn(agent, sessionId);
      console.log(JSON.stringify(outcome));
    },
  );
child.kill("SIGKILL");
process.exit(0);
