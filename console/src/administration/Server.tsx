// The agents of the server, the nodes of its cluster, and the limits that hold for everyone.

import { visible } from "../text/visible";
import { bytes, money, roughly } from "../text/words";
import { getJson } from "../wire/post";
import { usePolled } from "./polled";
import { Table } from "./Table";

interface Agent {
  name: string;
  isOurs: boolean;
  title: string;
  version: string;
  processes: number;
  mostProcesses: number;
  asleep: number;
  sessions: number;
  turns: number;
  questions: number;
  connections: number;
  isStopping: boolean;
}

interface Node {
  name: string;
  url: string;
  isAlive: boolean;
  isDraining: boolean;
  sessions: number;
  leaseSeconds: number | null;
}

interface Principal {
  name: string;
  sessions: number;
  turns: number;
  spentToday: number;
  limits: Record<string, number | null>;
}

interface Overview {
  agents: Agent[];
  principals: Principal[];
  cluster: { isCluster: boolean; nodes: Node[] };
  limits: Record<string, any>;
}

async function look(): Promise<Overview> {
  const [{ agents }, { principals }, cluster, limits] = await Promise.all([
    getJson<{ agents: Agent[] }>("/api/agents"),
    getJson<{ principals: Principal[] }>("/api/principals"),
    getJson<Overview["cluster"]>("/api/nodes"),
    getJson<Record<string, any>>("/api/limits"),
  ]);
  return { agents, principals, cluster, limits };
}

export function Server() {
  const { value, trouble } = usePolled(look, 3000);
  if (trouble) return <p role="alert" class="failure">{trouble}</p>;
  if (!value) return <p class="muted" role="status">Loading…</p>;
  return (
    <>
      <section aria-labelledby="agents-title">
        <h2 id="agents-title">Agents</h2>
        <Table head={["Agent", "State", "Processes", "Sessions", "Turns", "Questions", "Connections"]} rows={value.agents.map(agentRow)} />
      </section>
      <section aria-labelledby="principals-title">
        <h2 id="principals-title">Principals at work</h2>
        {value.principals.length ? (
          <Table head={["Principal", "Sessions", "Turns", "Spent today", "Limits"]} rows={value.principals.map(principalRow)} />
        ) : <p class="muted">No session is open now.</p>}
      </section>
      <section aria-labelledby="nodes-title">
        <h2 id="nodes-title">Nodes</h2>
        {value.cluster.isCluster ? (
          <Table head={["Node", "State", "Sessions", "Lease", "Address"]} rows={value.cluster.nodes.map(nodeRow)} />
        ) : <p class="muted">This server is alone. <span class="small">Several share their sessions by a database: <code>dragoman serve --store … --node …</code></span></p>}
      </section>
      <Limits limits={value.limits} />
    </>
  );
}

function agentRow(agent: Agent): string[] {
  const state = agent.isStopping ? "stopping" : agent.processes ? (agent.turns ? "works" : "ready") : "asleep";
  const name = [agent.name, agent.title, agent.version].filter(Boolean).map(visible).join(" · ");
  const processes = agent.mostProcesses ? `${agent.processes} of ${agent.mostProcesses}` : String(agent.processes);
  return [name || "not started yet", state, processes, ...[agent.sessions, agent.turns, agent.questions, agent.connections].map(String)];
}

function principalRow({ name, sessions, turns, spentToday, limits }: Principal): string[] {
  const set = Object.entries(limits).filter(([, most]) => most);
  const words = set.map(([limit, most]) => (limit === "spend" ? `$${most} a day` : limit === "memory" ? bytes(most!) : `${most} ${limit}`));
  return [visible(name), String(sessions), String(turns), money({ amount: spentToday, currency: "USD" }), words.join(", ") || "none"];
}

function nodeRow(node: Node): string[] {
  const state = !node.isAlive ? "away" : node.isDraining ? "hands its sessions over" : "alive";
  const lease = node.leaseSeconds === null ? "given back" : node.leaseSeconds >= 0 ? `${roughly(node.leaseSeconds)} left` : "over";
  return [visible(node.name), state, String(node.sessions), lease, visible(node.url)];
}

function Limits({ limits }: { limits: Record<string, any> }) {
  const facts: [string, string][] = [
    ["Version", `Dragoman ${limits.version}`],
    ["Highest mode", limits.maxMode || "every mode"],
    ["Folders", limits.workspaces.length ? limits.workspaces.map(visible).join(", ") : "every folder of the server's user"],
    ["Requests of a principal", `${limits.requestsPerSecond} a second, ${limits.requestsAtOnce} at once`],
    ["Messages on its sockets", `${limits.messagesPerSecond} a second`],
    ["Connections", `${limits.connections}; ${limits.connectionsOfPrincipal} of one principal, ${limits.connectionsOfLink} of one share link`],
    ["Readers of one session", `${limits.subscribers}; ${limits.subscribersOfLinks} of them by share links`],
    ["A dropped connection is kept", roughly(limits.keptSeconds)],
    ["A question waits for a client", roughly(limits.questionSeconds)],
  ];
  return (
    <section aria-labelledby="limits-title">
      <h2 id="limits-title">Limits</h2>
      <dl class="facts">{facts.map(([name, value]) => <><dt key={name}>{name}</dt><dd>{value}</dd></>)}</dl>
    </section>
  );
}
