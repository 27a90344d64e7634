// The sessions of every agent of this server, and what can be done with one: rename, put away, delete. The agent of this tab
// is asked on its own connection, others on one each.

import { useEffect, useMemo, useReducer } from "preact/hooks";
import { useApp } from "../app/context";
import { currentAgent } from "../state/agents";
import type { AgentLinks } from "../state/agent_links";
import type { SessionStore } from "../state/store";
import type { SessionInfo } from "../state/types";

const PAGES = 40; // of an agent's list; ours has fifty sessions on each

export interface ListedSession extends SessionInfo {
  agent: string;
  archived: boolean;
}

export class AllSessions {
  /** By agent, then by id. */
  readonly sessions = new Map<string, ListedSession>();
  readonly troubles = new Map<string, string>();
  isLoading = true;

  #own: string;
  #agents: string[];
  #gone = new Set<string>(); // keys of those that are being deleted

  constructor(
    private readonly store: SessionStore,
    private readonly links: AgentLinks,
    private readonly changed: () => void,
  ) {
    this.#own = currentAgent(store.me);
    this.#agents = store.me.agents?.length ? store.me.agents : [this.#own];
  }

  get agents(): readonly string[] {
    return this.#agents;
  }

  /** Those that are there, the newest first. */
  get all(): ListedSession[] {
    return [...this.sessions.values()]
      .filter((one) => !this.#gone.has(keyOf(one)))
      .sort((one, other) => String(other.updatedAt ?? "").localeCompare(String(one.updatedAt ?? "")));
  }

  async load(): Promise<void> {
    this.isLoading = true;
    this.changed();
    await Promise.all(this.#agents.flatMap((agent) => [this.#loadOf(agent, false), this.#loadOf(agent, true)]));
    this.isLoading = false;
    this.changed();
  }

  async rename(session: ListedSession, title: string): Promise<void> {
    await this.#request(session.agent, "session/set_title", { sessionId: session.sessionId, title });
    this.#patch(session, { title });
  }

  async setArchived(session: ListedSession, archived: boolean): Promise<void> {
    await this.#request(session.agent, archived ? "session/archive" : "session/unarchive", { sessionId: session.sessionId });
    this.#patch(session, { archived });
  }

  /** Take a session off the list, before it is deleted or until that is undone. */
  hide(session: ListedSession, isHidden: boolean): void {
    if (isHidden) this.#gone.add(keyOf(session));
    else this.#gone.delete(keyOf(session));
    this.changed();
  }

  async delete(session: ListedSession): Promise<void> {
    try {
      await this.#request(session.agent, "session/delete", { sessionId: session.sessionId });
      this.sessions.delete(keyOf(session));
      if (session.agent === this.#own) void this.store.list();
    } finally {
      this.hide(session, false);
    }
  }

  #request<T = any>(agent: string, method: string, params: Record<string, unknown>): Promise<T> {
    return agent === this.#own ? this.store.request<T>(method, params) : this.links.to(agent).request<T>(method, params);
  }

  #patch(session: ListedSession, change: Partial<ListedSession>): void {
    this.sessions.set(keyOf(session), { ...session, ...change });
    if (session.agent === this.#own) void this.store.list();
    this.changed();
  }

  async #loadOf(agent: string, archived: boolean): Promise<void> {
    let cursor: string | undefined;
    try {
      for (let page = 0; page < PAGES; page += 1) {
        const params = { ...(cursor && { cursor }), ...(archived && { archived: "only" }) };
        const found = await this.#request(agent, "session/list", params);
        for (const session of found.sessions as SessionInfo[]) {
          // An agent that knows no archive lists the same once more.
          const known = this.sessions.get(keyOf({ ...session, agent }));
          const isArchived = (session as { archived?: boolean }).archived ?? (archived && known === undefined);
          if (session._meta?.["dragoman/empty"] && !this.store.followed.has(session.sessionId)) continue;
          this.sessions.set(keyOf({ ...session, agent }), { ...session, agent, archived: isArchived });
        }
        this.changed();
        cursor = found.nextCursor ?? undefined;
        if (!cursor) return;
      }
    } catch (error) {
      if (!archived) this.troubles.set(agent, (error as Error).message);
      this.changed();
    }
  }
}

export function keyOf({ agent, sessionId }: { agent: string; sessionId: string }): string {
  return `${agent} ${sessionId}`;
}

/** The sessions of every agent; the component is drawn again when something of them changes. */
export function useAllSessions(): AllSessions {
  const { store, links } = useApp();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const sessions = useMemo(() => new AllSessions(store, links, () => redraw(undefined)), [store]);
  useEffect(() => void sessions.load(), [sessions]);
  return sessions;
}
