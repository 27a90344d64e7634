// Connections to the other agents of this server, beside the one that this tab works with: for lists, and for questions
// that are answered in the inbox. Each is made when it is first needed, and left with the page.

import { Wire, type Id, type WireListener } from "../wire/wire";
import { SessionState } from "./session";
import type { Question } from "./store";

const UNREMEMBERED = { remember() {}, forget: () => undefined };
const SECONDS = 20;

/** A connection to one agent, with the questions of the sessions that were opened in it. */
export class AgentLink implements WireListener {
  readonly questions = new Map<Id, Question>();
  readonly followed = new Map<string, SessionState>();
  /** The titles of its last sessions. */
  readonly titles = new Map<string, string>();
  #wire: Wire;
  #met: Promise<unknown>;
  #resolve: (hello: unknown) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(
    readonly agent: string,
    private readonly changed: () => void,
  ) {
    this.#met = this.#meeting();
    this.#wire = new Wire(this, agentPath(agent), UNREMEMBERED);
  }

  /** Ask the agent; waits for the connection, and fails with a sentence where there is none. */
  async request<T = any>(method: string, params: Record<string, any>): Promise<T> {
    await this.#met;
    return this.#wire.request<T>(method, params);
  }

  /** Get what a session asks, and what its turn has done. */
  async attend(sessionId: string, cwd: string): Promise<void> {
    if (this.followed.has(sessionId)) return;
    this.followed.set(sessionId, new SessionState(sessionId));
    try {
      await this.request("session/resume", { sessionId, cwd, mcpServers: [], replayFrom: { type: "start" } });
    } catch (error) {
      this.followed.delete(sessionId);
      throw error;
    }
  }

  answer(id: Id, result: unknown): boolean {
    if (!this.questions.delete(id)) return false;
    this.#wire.answer(id, result);
    this.changed();
    return true;
  }

  close(): void {
    this.#wire.close();
  }

  // -- the wire calls these ------------------------------------------------------------------------------------------

  update({ sessionId, update }: any, number: number): void {
    this.followed.get(sessionId)?.apply(update, number);
    this.changed();
  }

  ask(id: Id, method: string, params: any): void {
    if (method === "session/request_permission" || (method === "elicitation/create" && params.mode === "form")) {
      this.questions.set(id, { id, method, params } as Question);
      this.changed();
    } else this.#wire.refuse(id);
  }

  withdrawn(id: Id): void {
    this.questions.delete(id);
    this.changed();
  }

  lost(): void {
    this.questions.clear();
    this.followed.clear();
    this.#met = this.#meeting();
    this.changed();
  }

  fresh(hello: any): void {
    this.#resolve(hello);
    this.request<{ sessions: { sessionId: string; title?: string | null }[] }>("session/list", {}).then(({ sessions }) => {
      for (const { sessionId, title } of sessions) if (title) this.titles.set(sessionId, title);
      this.changed();
    }, () => null); // without titles it goes as well
  }

  state(state: { is: string; why?: string }): void {
    if (state.is === "refused") this.#reject(new Error(state.why ?? "The agent cannot be reached."));
  }

  loggedOut(): void {
    this.#reject(new Error("Your login has ended. Log in again."));
  }

  gap(): void {
    this.followed.clear(); // what was missed is told again when the session is looked at
  }

  options(): void {}
  missed(): void {}
  restored(): void {}

  #meeting(): Promise<unknown> {
    const met = new Promise<unknown>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      setTimeout(() => reject(new Error(`The agent ${this.agent} did not answer. Try again.`)), SECONDS * 1000);
    });
    met.catch(() => null); // it is told to who waits for it
    return met;
  }
}

/** The connections of a tab, by the names of agents: one each, which stays, since each costs its agent a process. */
export class AgentLinks {
  #links = new Map<string, AgentLink>();
  #listeners = new Set<() => void>();

  to(agent: string): AgentLink {
    let link = this.#links.get(agent);
    if (!link) this.#links.set(agent, (link = new AgentLink(agent, () => this.#changed())));
    return link;
  }

  /** Call back after each change of a connection, of a session or question in it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  close(): void {
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }
}

/** The address of an agent; of the only one, or the first, where it has no name. */
export function agentPath(agent: string): string {
  return agent ? `/acp/${encodeURIComponent(agent)}` : "/acp";
}
