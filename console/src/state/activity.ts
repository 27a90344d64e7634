// What runs and what waits for an answer, in all sessions of this user at every agent: asked of the server at intervals,
// more seldom while the page is not seen. Ids and times alone; what is asked comes over ACP.

import { getJson, Refused } from "../wire/post";

const SEEN = 3000; // milliseconds between two looks while the page is seen
const UNSEEN = 15_000;

export interface WaitingQuestion {
  id: string;
  kind: "permission" | "form";
  seconds: number;
}

export interface BusySession {
  agent: string;
  sessionId: string;
  state: "waiting" | "running";
  cwd: string;
  seconds: number;
  questions: WaitingQuestion[];
}

export class Activity {
  sessions: readonly BusySession[] = [];
  /** There was an answer. */
  isKnown = false;
  /** When the last one came, by the clock of this browser. */
  at = 0;
  /** Why there is none now, in a sentence. */
  trouble = "";

  #listeners = new Set<(before: readonly BusySession[]) => void>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isClosed = false;
  #looking: Promise<void> | null = null;
  #seen = () => document.hidden || void this.look();

  /** Look now, and then at intervals until `close`. */
  start(): void {
    this.#isClosed = false;
    document.addEventListener("visibilitychange", this.#seen);
    void this.look();
  }

  close(): void {
    this.#isClosed = true;
    document.removeEventListener("visibilitychange", this.#seen);
    if (this.#timer) clearTimeout(this.#timer);
  }

  /** Call back with what was known before, whenever something is known anew. */
  subscribe(listener: (before: readonly BusySession[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Questions that wait, of all sessions. */
  get waiting(): number {
    return this.sessions.reduce((sum, session) => sum + session.questions.length, 0);
  }

  of(sessionId: string): BusySession | undefined {
    return this.sessions.find((session) => session.sessionId === sessionId);
  }

  /** Look now, whenever the next look would be. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = null));
    return this.#looking;
  }

  async #look(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    const before = this.sessions;
    const text = JSON.stringify(before);
    const wasKnown = this.isKnown;
    const { trouble } = this;
    try {
      this.sessions = (await getJson<{ sessions: BusySession[] }>("/api/activity")).sessions;
      this.isKnown = true;
      this.at = Date.now();
      this.trouble = "";
    } catch (error) {
      this.trouble = (error as Error).message;
      if (error instanceof Refused && [401, 403].includes(error.status)) this.#isClosed = true; // the login has ended
    }
    if (this.#isClosed) return;
    if (text !== JSON.stringify(this.sessions) || !wasKnown || trouble !== this.trouble) {
      for (const listener of this.#listeners) listener(before);
    }
    this.#timer = setTimeout(() => void this.look(), document.hidden ? UNSEEN : SEEN);
  }
}
