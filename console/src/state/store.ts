// The sessions that this tab follows, and what a person does with them: opens, prompts, answers, chooses, stops. Owns the
// wire. Components subscribe; they are told at most once a frame that something has changed.

import { RequestFailed } from "../wire/failure";
import { Wire, type Id, type WireListener, type WireState } from "../wire/wire";
import * as memory from "./memory";
import { sendPrompt, type PromptTarget, type Sending } from "./sending";
import { SessionState } from "./session";
import type { ContentBlock, Option, SessionInfo } from "./types";

const FOLLOWED = 8; // sessions that this tab follows at once; the one not looked at for longest is let go
const BUSY_PAUSE = 300; // milliseconds, where no turn is seen that could end
const PAGES = 20; // of the list, when a session is looked for by its id

/** Who is logged in, as the server says it. */
export interface Me {
  name: string;
  scopes: string[];
  /** The folder that a new session is offered. */
  folder: string;
  version: string;
  /** The names of the agents, where there are several. */
  agents?: string[];
  principal?: string;
  /** It may change tokens and see who allowed what. */
  administers?: boolean;
  /** It has come by a share link, which shows this session and nothing else. */
  share?: { sessionId: string; agent: string; label: string };
}

/** A prompt that was sent and is not taken up yet. */
export interface QueuedPrompt {
  readonly key: string;
  readonly blocks: readonly ContentBlock[];
  readonly is: Sending;
}

/** A session that this tab follows. */
export interface Followed {
  readonly state: SessionState;
  /** Messages up to this number of the connection are not part of what is shown. */
  from: number;
  /** A turn ran when it was opened: what came before is told when that ends. */
  isPartial: boolean;
  queue: QueuedPrompt[];
  /** How often a person has stopped a turn. */
  stops: number;
}

/** A question of the agent. */
export interface Question {
  readonly id: Id;
  readonly method: "session/request_permission" | "elicitation/create";
  readonly params: any;
}

/** What the agent can do, as far as the console offers it. */
export interface Abilities {
  deletes: boolean;
  rewinds: boolean;
  steers: boolean;
  forks: boolean;
  images: boolean;
  embeds: boolean;
}

/** What is wished for a new session. */
export interface NewSession {
  folder: string;
  inWorktree: boolean;
}

/** What the store needs of the screen. */
export interface StoreHooks {
  loggedOut(): void;
  /** Another session is shown, or none: the address follows. */
  shown(id: string | null): void;
}

export class SessionStore implements WireListener {
  readonly followed = new Map<string, Followed>(); // by id, the one shown last at the end
  readonly listed = new Map<string, SessionInfo>();
  readonly questions = new Map<Id, Question>();
  /** The session that is shown. */
  current: Followed | null = null;
  link: WireState = { is: "connecting", retryAt: null };
  /** A sentence about what did not work. */
  trouble = "";
  hasMore = false;
  isListed = false;
  /** What a new session is made with. */
  wish: NewSession;
  /** Counts prompts and openings: the transcript then shows its end. */
  jumps = 0;

  #wire: Wire | null = null;
  #listeners = new Set<() => void>();
  #frame = false;
  #cursor: string | null = null;
  #opened: Promise<void> = Promise.resolve(); // the session that is shown is open in the connection there is
  #reopened: () => void = () => {};
  #beginning: Promise<unknown> | null = null;
  #offered: Option[]; // the options that a new session has
  #chosen: Record<string, string | boolean>;
  #prompts = 0;
  #wasRunning = false;

  constructor(
    readonly me: Me,
    readonly agentPath: string,
    private readonly hooks: StoreHooks,
  ) {
    const drafted = memory.next(me.name);
    this.wish = { folder: drafted.folder || me.folder, inWorktree: false };
    this.#chosen = drafted.chosen ?? {};
    this.#offered = memory.newOptions(me.name);
  }

  /** Connect; `wanted` is the session that the address names. Goes on with the connection of before a reload. */
  start(wanted: string | null): void {
    const remembered = memory.recall();
    for (const [id, kept] of Object.entries(remembered?.sessions ?? {})) {
      const { from, ...fields } = kept;
      Object.assign(this.#follow(id).state, fields);
      this.followed.get(id)!.from = from;
    }
    const last = memory.next(this.me.name).open ? undefined : [...this.followed.values()].at(-1);
    const shown = wanted ? this.followed.get(wanted) : last;
    this.#wanted = wanted;
    this.#notOpen();
    if (!remembered?.connection || !shown) {
      this.#wire = new Wire(this, this.agentPath, memory.requestMemory);
      return;
    }
    // This tab was reloaded: its connection goes on, and says again what its sessions are made of. Until the server has
    // said that it does, nothing is sent in it.
    this.#show(shown);
    const after = Math.min(...[...this.followed.values()].map(({ from }) => from));
    this.#wire = new Wire(this, this.agentPath, memory.requestMemory, { connection: remembered.connection, after });
    void this.list();
  }

  #wanted: string | null = null;

  /** Leave the connection; what runs goes on. */
  close(): void {
    this.#wire?.close();
    this.#wire = null;
  }

  get wire(): Wire | null {
    return this.#wire;
  }

  /** When there is a connection, in which the session that is shown is open: then it is known what the agent can do. */
  get opened(): Promise<void> {
    return this.#opened;
  }

  get mayPrompt(): boolean {
    return this.me.scopes.includes("prompt");
  }

  get abilities(): Abilities {
    const { deletes, rewinds, steers, forks, images, embeds } = memory.recall() ?? {};
    return {
      deletes: Boolean(deletes),
      rewinds: Boolean(rewinds),
      steers: Boolean(steers),
      forks: Boolean(forks),
      images: Boolean(images),
      embeds: Boolean(embeds),
    };
  }

  // -- who listens ---------------------------------------------------------------------------------------------------

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Something has changed; it is drawn with the next frame. */
  changed(): void {
    if (this.#frame) return;
    this.#frame = true;
    const draw = () => {
      this.#frame = false;
      for (const listener of this.#listeners) listener();
    };
    // A tab that is not seen gets no frames, but has a title and notifications.
    if (document.hidden) setTimeout(draw, 200);
    else requestAnimationFrame(draw);
  }

  setTrouble(sentence: string): void {
    this.trouble = sentence;
    this.changed();
  }

  /** The value of a promise, or null with its failure shown. */
  async tried<T>(promise: Promise<T>): Promise<T | null> {
    try {
      return await promise;
    } catch (error) {
      this.setTrouble((error as Error).message);
      return null;
    }
  }

  request<T = any>(method: string, params: Record<string, any>): Promise<T> {
    if (!this.#wire) return Promise.reject(new Error("You are logged out. Log in again."));
    return this.#wire.request<T>(method, params);
  }

  // -- what the server says ------------------------------------------------------------------------------------------

  update({ sessionId, update }: any, number: number): void {
    const followed = this.followed.get(sessionId);
    if (!followed || number <= followed.from) return;
    const { state } = followed;
    const { title, optionsAt } = state;
    state.apply(update, number);
    if (followed.isPartial && update.sessionUpdate === "state_update" && update.state === "idle") void this.#reopen(followed);
    if (state.title !== title || state.optionsAt !== optionsAt || update.sessionUpdate === "state_update") this.#keep();
    if (followed === this.current) this.#noteTurn(followed);
    this.changed();
  }

  options(sessionId: string, options: Option[], number: number): void {
    this.followed.get(sessionId)?.state.setOptions(options, number);
    this.#keep();
    this.changed();
  }

  missed({ sessionId }: any, number: number): void {
    const followed = this.followed.get(sessionId);
    if (followed && number > followed.from) this.#setPartial(followed);
  }

  ask(id: Id, method: string, params: any): void {
    if (memory.answered().some(([one]) => one === id)) return;
    if (method === "session/request_permission" || (method === "elicitation/create" && params.mode === "form")) {
      this.questions.set(id, { id, method, params } as Question);
      this.changed();
    } else this.#wire?.refuse(id);
  }

  withdrawn(id: Id): void {
    this.questions.delete(id);
    this.changed();
  }

  state(state: WireState): void {
    this.link = state;
    this.changed();
  }

  lost(): void {
    this.questions.clear();
    this.#notOpen();
    this.changed();
  }

  restored(received: number): void {
    memory.remember({ answered: memory.answered().filter(([, number]) => number <= received) });
    this.#nowOpen();
  }

  async fresh(hello: any): Promise<void> {
    const current = this.current?.state;
    this.followed.clear();
    memory.forget();
    const session = hello.capabilities?.session ?? {};
    memory.remember({
      deletes: Boolean(session.delete),
      rewinds: Boolean(hello._meta?.rewind?.supported),
      steers: Boolean(hello._meta?.steering?.supported),
      forks: Boolean(session.fork),
      images: Boolean(session.prompt?.image),
      embeds: Boolean(session.prompt?.embeddedContext),
    });
    await this.list();
    // The server knows the folder of a session that is only read.
    const { share } = this.me;
    if (share) await this.open({ sessionId: share.sessionId, cwd: "/", title: share.label });
    else if (current) await this.open({ sessionId: current.id, cwd: current.cwd, title: current.title });
    else if (this.#wanted) await this.openById(this.#wanted);
    else this.showNone();
    this.#nowOpen();
  }

  gap(): void {
    for (const [id, followed] of this.followed) if (followed !== this.current) this.followed.delete(id);
    const followed = this.current;
    if (!followed) return;
    // What still arrives of the stream is the end of what was lost: told before its beginning, it would stand before it. An
    // answer, also a refusal, comes behind all of that, and what is told again behind the answer.
    followed.state.clear();
    followed.from = Infinity;
    const isBehind = this.request("session/list", {}).catch(() => null);
    void isBehind.then(() => (this.followed.get(followed.state.id) === followed ? this.#reopen(followed) : undefined));
  }

  loggedOut(): void {
    this.close();
    this.hooks.loggedOut();
  }

  // -- the list ------------------------------------------------------------------------------------------------------

  async list(more = false): Promise<void> {
    if (this.me.share) return;
    const page = await this.tried(this.request("session/list", more && this.#cursor ? { cursor: this.#cursor } : {}));
    if (!page) return;
    if (!more) this.listed.clear();
    for (const session of page.sessions as SessionInfo[]) this.listed.set(session.sessionId, session);
    this.#cursor = page.nextCursor ?? null;
    this.hasMore = this.#cursor !== null;
    this.isListed = true;
    this.changed();
  }

  /** Sessions with something in them. Ours may have begun since we asked. */
  get sessions(): SessionInfo[] {
    return [...this.listed.values()].filter((one) => !one._meta?.["dragoman/empty"] || this.followed.has(one.sessionId));
  }

  /** What a person calls a session. */
  titleOf(sessionId: string | undefined): string {
    if (sessionId === undefined) return "";
    return this.followed.get(sessionId)?.state.title || this.listed.get(sessionId)?.title || "Untitled";
  }

  // -- which session is shown ----------------------------------------------------------------------------------------

  /** Show the session with this id, if this user may. */
  async openById(id: string): Promise<void> {
    if (this.current?.state.id === id) return;
    const known = this.followed.has(id) ? { sessionId: id, cwd: "" } : await this.find(id);
    if (known) return this.open(known);
    this.setTrouble("There is no such session here. Choose one from the list, or begin a new one.");
    this.showNone();
  }

  /** A session of the list, by its id; null where this user has none such. */
  async find(id: string): Promise<SessionInfo | null> {
    const listed = this.listed.get(id);
    if (listed) return listed;
    let cursor: string | undefined;
    for (let page = 0; page < PAGES; page += 1) {
      const found = await this.tried(this.request("session/list", cursor ? { cursor } : {}));
      const session = found?.sessions.find((one: SessionInfo) => one.sessionId === id);
      if (session) return session;
      cursor = found?.nextCursor;
      if (!cursor) break;
    }
    return null;
  }

  /** Show a session: what this tab follows already as it stands, another by having it told. */
  async open({ sessionId, cwd, title }: SessionInfo): Promise<void> {
    const known = this.followed.get(sessionId);
    if (known) return this.#show(known);
    const followed = this.#follow(sessionId);
    followed.state.cwd = cwd;
    followed.state.title = title ?? "";
    followed.from = Infinity;
    this.#show(followed);
    return this.#reopen(followed);
  }

  /** Follow a session without showing it: what it asks is asked here. */
  async attend({ sessionId, cwd, title }: SessionInfo): Promise<void> {
    await this.#opened;
    if (this.followed.has(sessionId) || !this.#wire) return;
    const followed = this.#follow(sessionId);
    followed.state.cwd = cwd;
    followed.state.title = title ?? "";
    followed.from = Infinity;
    await this.#reopen(followed);
  }

  /** Show no session: the next prompt makes one. */
  showNone(): void {
    this.current = null;
    this.#keepNext();
    this.jumps += 1;
    this.hooks.shown(null);
    this.changed();
  }

  /** Begin anew, with nothing chosen, and learn what can be chosen. */
  async startAnew(): Promise<void> {
    if (!this.mayPrompt) return;
    this.trouble = "";
    this.#chosen = {};
    this.showNone();
    await this.#opened; // before that it is not known what the agent can do
    if (this.current || this.#offered.length || !this.abilities.deletes) return;
    // What can be chosen is known of a session alone: of one that is deleted as soon as it has said so.
    const made = await this.tried(this.request("session/new", { cwd: this.#folder(), mcpServers: [] }));
    if (!made) return;
    await this.tried(this.request("session/delete", { sessionId: made.sessionId }));
    this.#offer(made.configOptions ?? []);
    this.changed();
  }

  setWish(wish: Partial<NewSession>): void {
    this.wish = { ...this.wish, ...wish };
    this.#keepNext();
    this.changed();
  }

  /** Have a session told again from its beginning, as after a rewind. */
  reopen(sessionId: string): void {
    const followed = this.followed.get(sessionId);
    if (followed) void this.#reopen(followed);
  }

  #show(followed: Followed): void {
    this.current = followed;
    this.#wasRunning = followed.state.isRunning;
    this.followed.delete(followed.state.id);
    this.followed.set(followed.state.id, followed);
    this.#keep();
    this.#keepNext();
    this.jumps += 1;
    this.hooks.shown(followed.state.id);
    this.changed();
  }

  async #reopen(followed: Followed): Promise<void> {
    const { state } = followed;
    const params = { sessionId: state.id, cwd: state.cwd, mcpServers: [] };
    state.clear();
    followed.from = this.#wire?.received ?? 0;
    followed.isPartial = false;
    try {
      const answer = await this.request("session/resume", { ...params, replayFrom: { type: "start" } });
      state.setCommands(answer.availableCommands, answer._meta);
    } catch (error) {
      if (!(error instanceof RequestFailed) || error.reason !== "busy") {
        this.followed.delete(state.id);
        if (followed === this.current) this.showNone();
        return this.setTrouble((error as Error).message);
      }
      this.#setPartial(followed); // its turn has just begun
      const answer = await this.tried(this.request("session/resume", params));
      if (!answer) return undefined;
      state.setCommands(answer.availableCommands, answer._meta);
    }
    this.#keep();
    return this.changed();
  }

  /** A session is told when no turn runs; until then there is what can be had of this one. */
  #setPartial(followed: Followed): void {
    followed.isPartial = true;
    followed.state.notice("info", "A turn is running. What came before it is shown when it ends.");
    this.changed();
  }

  #follow(id: string): Followed {
    let followed = this.followed.get(id);
    if (!followed) {
      followed = { state: new SessionState(id), from: 0, isPartial: false, queue: [], stops: 0 };
      this.followed.set(id, followed);
      for (const [oldId, old] of this.followed) {
        if (this.followed.size <= FOLLOWED) break;
        if (old !== this.current && old !== followed && !old.state.isRunning) this.followed.delete(oldId);
      }
    }
    return followed;
  }

  #noteTurn({ state }: Followed): void {
    const listed = this.listed.get(state.id);
    if (listed && state.title) listed.title = state.title;
    if (this.#wasRunning && !state.isRunning && this.#wire) void this.list();
    this.#wasRunning = state.isRunning;
  }

  // -- a new session -------------------------------------------------------------------------------------------------

  /** The options that are shown: of the session, or of the one that the next prompt makes. */
  get shownOptions(): Option[] {
    if (this.current) return this.current.state.options;
    return this.#offered.map((option) =>
      option.configId in this.#chosen ? withValue(option, this.#chosen[option.configId]!) : option,
    );
  }

  /** A session is made when its first prompt is sent: looking, writing and choosing leave none behind. */
  #begin(): Promise<unknown> {
    if (this.current || !this.#wire) return this.#beginning ?? Promise.resolve();
    this.#beginning ??= this.#opened
      .then(() => (this.current ? undefined : this.#makeSession()))
      .finally(() => {
        this.#beginning = null;
      });
    return this.#beginning;
  }

  /** Make the session of the first prompt, with what was chosen for it. Nothing is sent where that cannot be had. */
  async #makeSession(): Promise<void> {
    if (!this.mayPrompt || !this.#wire) return;
    const from = this.#wire.received;
    const cwd = this.#folder();
    const wanted = this.shownOptions;
    const wish = this.wish.inWorktree ? { _meta: { "dragoman/worktree": true } } : {};
    const made = await this.tried(this.request("session/new", { cwd, mcpServers: [], ...wish }));
    if (!made) return;
    this.wish.inWorktree = false;
    this.#offer(made.configOptions ?? []);
    const followed = this.#follow(made.sessionId);
    followed.from = from;
    const optionsAt = this.#wire?.received ?? 0;
    Object.assign(followed.state, { cwd, options: this.#offered, optionsAt, state: "idle" });
    followed.state.setCommands(made.availableCommands, made._meta);
    try {
      await this.#setOptions(followed.state, wanted);
    } catch (error) {
      this.followed.delete(made.sessionId);
      this.request("session/delete", { sessionId: made.sessionId }).catch(() => null);
      this.#chosen = {};
      this.showNone();
      return this.setTrouble((error as Error).message);
    }
    this.#chosen = {};
    this.trouble = "";
    this.#show(followed);
    void this.list();
  }

  /** What was shown counts: an option that the new session has otherwise is set, before anything is sent. */
  async #setOptions(state: SessionState, wanted: Option[]): Promise<void> {
    for (const { configId, type, currentValue } of wanted) {
      const there = state.options.find((option) => option.configId === configId);
      if (!there || there.type !== type) {
        if (configId in this.#chosen) throw new Error(`A new session has no option ${configId} any more. Choose again.`);
        continue;
      }
      if (there.currentValue === currentValue) continue;
      const value = { type: type === "boolean" ? "boolean" : "id", value: currentValue };
      await this.request("session/set_config_option", { sessionId: state.id, configId, ...value });
    }
  }

  #offer(options: Option[]): void {
    this.#offered = options;
    memory.rememberNewOptions(this.me.name, options);
  }

  #folder(): string {
    return this.wish.folder.trim() || this.me.folder;
  }

  // -- what a person does in a session -------------------------------------------------------------------------------

  /** Set an option of the session that is shown, or of the next one. */
  async choose(option: Option, value: string | boolean): Promise<void> {
    if (!this.current) {
      this.#chosen[option.configId] = value;
      this.trouble = "";
      this.#keepNext();
      return this.changed();
    }
    const typed = { type: option.type === "boolean" ? "boolean" : "id", value };
    const params = { sessionId: this.current.state.id, configId: option.configId, ...typed };
    if (await this.tried(this.request("session/set_config_option", params))) this.trouble = "";
    return this.changed();
  }

  /** Send a prompt, into a new session if none is shown. `waits`: not into the turn that runs, but when it is over. False:
   *  it was not sent, and the trouble says why. */
  async prompt(blocks: ContentBlock[], waits = false): Promise<boolean> {
    await this.#begin();
    if (!this.current) return false;
    let followed = this.current;
    this.trouble = "";
    this.jumps += 1;
    let queued = this.#queue(followed, blocks);
    await this.#opened;
    const { id } = followed.state;
    if (this.followed.get(id) !== followed) {
      queued.remove();
      const again = this.followed.get(id);
      if (!again) return false; // it could not be opened again
      followed = again;
      queued = this.#queue(followed, blocks);
    }
    try {
      await sendPrompt(this.#target(followed, queued.moved), blocks, { steers: this.abilities.steers, waits });
      return true;
    } catch (error) {
      this.setTrouble((error as Error).message);
      return false;
    } finally {
      queued.remove();
    }
  }

  /** Show a prompt that is on its way. */
  #queue(followed: Followed, blocks: readonly ContentBlock[]): { moved: (to: Sending) => void; remove: () => void } {
    const key = `prompt-${++this.#prompts}`;
    const set = (queue: QueuedPrompt[]) => {
      followed.queue = queue;
      this.changed();
    };
    set([...followed.queue, { key, blocks, is: "sent" }]);
    return {
      moved: (is) => set(followed.queue.map((one) => (one.key === key ? { key, blocks, is } : one))),
      remove: () => set(followed.queue.filter((one) => one.key !== key)),
    };
  }

  #target(followed: Followed, moved: (to: Sending) => void): PromptTarget {
    return {
      id: followed.state.id,
      get isRunning() { return followed.state.isRunning; },
      get stops() { return followed.stops; },
      request: (method, params) => this.request(method, params),
      untilIdle: () => this.#untilIdle(followed),
      moved,
    };
  }

  /** Wait until the turn of a session is over, or the session is not followed any more. */
  #untilIdle(followed: Followed): Promise<void> {
    const isOver = () => !followed.state.isRunning || this.followed.get(followed.state.id) !== followed || !this.#wire;
    if (isOver()) return new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE));
    return new Promise((resolve) => {
      const unsubscribe = this.subscribe(() => {
        if (!isOver()) return;
        unsubscribe();
        resolve();
      });
    });
  }

  /** Stop the turn of the session that is shown. */
  stop(): void {
    if (!this.current?.state.isRunning) return;
    this.current.stops += 1;
    this.#wire?.notify("session/cancel", { sessionId: this.current.state.id });
  }

  /** Send a prompt to a session that is followed, shown or not; its failure is for the caller to tell. */
  async promptIn(sessionId: string, text: string): Promise<void> {
    const followed = this.followed.get(sessionId);
    if (!followed) throw new Error("This session is not open here any more. Open it again.");
    const blocks: ContentBlock[] = [{ type: "text", text }];
    const queued = this.#queue(followed, blocks);
    try {
      await sendPrompt(this.#target(followed, queued.moved), blocks, { steers: this.abilities.steers, waits: false });
    } finally {
      queued.remove();
    }
  }

  /** Stop the turn of a session. */
  stopIn(sessionId: string): void {
    const followed = this.followed.get(sessionId);
    if (followed) followed.stops += 1;
    this.#wire?.notify("session/cancel", { sessionId });
  }

  /** Answer a question; false where it is not open any more. */
  answer(id: Id, result: unknown): boolean {
    if (!this.questions.delete(id) || !this.#wire) return false;
    memory.rememberAnswer(id, this.#wire.answer(id, result));
    this.changed();
    return true;
  }

  // -- what is kept --------------------------------------------------------------------------------------------------

  /** Until there is a connection in which the session that is shown is open, what is sent waits. */
  #notOpen(): void {
    const earlier = this.#reopened;
    this.#opened = new Promise((resolve) => {
      this.#reopened = () => {
        earlier();
        resolve();
      };
    });
  }

  #nowOpen(): void {
    this.#reopened();
    this.#reopened = () => {};
    this.changed();
  }

  /** Which connection this tab has, and from which message on its sessions are told in it. */
  #keep(): void {
    if (!this.#wire?.connection) return;
    const sessions: Record<string, memory.KeptSession> = {};
    for (const { state, from, isPartial } of this.followed.values()) {
      if (isPartial || !Number.isFinite(from)) continue;
      const { cwd, options, optionsAt, title } = state;
      sessions[state.id] = { from, cwd, options, optionsAt, title };
    }
    memory.remember({ connection: this.#wire.connection, sessions });
  }

  /** What is chosen for the next session outlives a reload, as what is written does. */
  #keepNext(): void {
    memory.keepNext(this.me.name, { open: this.current === null, folder: this.wish.folder, chosen: this.#chosen });
  }
}

/** An option with another value. A model may be named that is not listed: the agent says whether there is such a one. */
function withValue(option: Option, value: string | boolean): Option {
  if (typeof value === "boolean" || !option.options) return { ...option, currentValue: value };
  const rows = option.options.flatMap((one) => ("options" in one ? one.options : [one]));
  if (rows.some((row) => row.value === value)) return { ...option, currentValue: value };
  return { ...option, currentValue: value, options: [...option.options, { value, name: value }] };
}
