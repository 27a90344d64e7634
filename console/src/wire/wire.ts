// The connection to an agent: ACP version 2 over a WebSocket, which goes on where it was cut.
//
// The n-th message of a connection has the number n, on both ways. After a drop we name the last one we have, are told
// how many of ours have arrived, and send the rest again. Where the server has forgotten the connection a new one is
// made: whatever still waited for an answer fails (`lost`), and its owner opens its sessions again (`fresh`).

import { RequestFailed, failureText, type WireError } from "./failure";
import { post, subprotocols } from "./post";

const KEPT = 32 * 1024 * 1024; // characters sent and perhaps not arrived; a prompt with pictures is large
const PAUSES = [0, 250, 500, 1000, 2000, 5000, 10000]; // milliseconds before each attempt in a row, then the last
const FORGOTTEN = new Set([1009, 4004, 4009]); // too large, gone, taken over by another tab: coming back ends the same
const ASKED = { jsonrpc: "2.0" } as const;
const ANSWERED_WITH_OPTIONS = new Set(["session/resume", "session/set_config_option"]);
const LOST: WireError = { code: 0, message: "The connection was lost. What was asked may have been done or not." };

export type Id = string | number;
export type Params = Record<string, any>;

interface Message {
  id?: Id;
  method?: string;
  params?: any;
  result?: any;
  error?: WireError;
}

interface Waiting {
  resolve: (result: any) => void;
  reject: (error: Error) => void;
  method: string;
  params: Params;
  number: number;
}

/** Whether messages go through: `connecting` until there is a connection, and after a drop; then how long it lasts. */
export type WireState = { is: "connected" } | { is: "connecting"; retryAt: number | null } | { is: "refused"; why: string };

/** What the owner of a wire does with what arrives. Numbers are those of the message in its connection. */
export interface WireListener {
  update(params: any, number: number): void;
  /** The options in an answer: an agent need not send those in an update as well. */
  options(sessionId: string, options: any[], number: number): void;
  /** A session whose beginning this connection did not get. */
  missed(params: any, number: number): void;
  ask(id: Id, method: string, params: any): void;
  withdrawn(id: Id): void;
  state(state: WireState): void;
  /** The server has forgotten the connection: requests fail, questions are gone. */
  lost(): void;
  /** There is a new connection. */
  fresh(hello: any): void;
  /** Messages were lost for good. */
  gap(): void;
  /** The connection of before a reload goes on; `received` of its messages had arrived. */
  restored(received: number): void;
  loggedOut(): void;
}

/** Requests that are answered perhaps only after a reload, and their sessions. */
export interface RequestMemory {
  remember(id: string, sessionId: string): void;
  /** Forget one that is answered; returns its session. */
  forget(id: Id): string | undefined;
}

export interface Restored {
  connection: string;
  /** The last message of it that is known. */
  after: number;
}

export class Wire {
  connection: string | null;
  /** The number of the last message that arrived. */
  received: number;
  /** Messages go through now. */
  ready = false;

  #restoring: boolean;
  readonly #life = Math.random().toString(36).slice(2, 10); // ids of an earlier life of this tab mean nothing now
  #failures = 0;
  #ids = 0;
  #sent = 0; // how many messages of ours this connection had
  #kept: [number, string][] = []; // those that may not have arrived
  #size = 0;
  #greeted = false;
  #waiting = new Map<Id, Waiting>();
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;
  #hurry = () => this.#reconnectNow();

  /** `path` is where the agent is; `restored` the connection of this tab before a reload. */
  constructor(
    private readonly on: WireListener,
    private readonly path: string,
    private readonly memory: RequestMemory,
    restored: Restored | null = null,
  ) {
    this.connection = restored?.connection ?? null;
    this.received = restored?.after ?? 0;
    this.#restoring = restored !== null;
    addEventListener("online", this.#hurry);
    document.addEventListener("visibilitychange", this.#hurry);
    this.#connect();
  }

  // -- what is sent --------------------------------------------------------------------------------------------------

  request<T = any>(method: string, params: Params): Promise<T> {
    const id = `${this.#life}-${++this.#ids}`;
    if (ANSWERED_WITH_OPTIONS.has(method)) this.memory.remember(id, params.sessionId);
    return new Promise((resolve, reject) => {
      const number = this.#send({ ...ASKED, id, method, params });
      this.#waiting.set(id, { resolve, reject, method, params, number });
    });
  }

  notify(method: string, params: Params): void {
    this.#send({ ...ASKED, method, params });
  }

  /** Answer a question of the agent; returns the number of the message. */
  answer(id: Id, result: unknown): number {
    return this.#send({ ...ASKED, id, result });
  }

  refuse(id: Id): void {
    this.#send({ ...ASKED, id, error: { code: -32601, message: "This page cannot do that." } });
  }

  /** End it on our side; what runs goes on. */
  close(): void {
    this.#closed = true;
    removeEventListener("online", this.#hurry);
    document.removeEventListener("visibilitychange", this.#hurry);
    if (this.#timer) clearTimeout(this.#timer);
    this.#socket?.close(4000); // a drop: what runs goes on
    this.#giveUp();
  }

  // -- one connection ------------------------------------------------------------------------------------------------

  #connect(): void {
    this.#timer = null;
    if (this.#closed) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = this.connection === null ? "" : `?connection=${encodeURIComponent(this.connection)}&after=${this.received}`;
    const socket = (this.#socket = new WebSocket(`${scheme}://${location.host}${this.path}${query}`, subprotocols()));
    let opened = false;
    socket.onopen = () => {
      opened = true;
      if (this.connection === null) this.#greet(socket);
    };
    socket.onmessage = (event) => socket === this.#socket && this.#receive(event.data);
    socket.onclose = (event) => socket === this.#socket && void this.#dropped(opened, event.code);
  }

  #greet(socket: WebSocket): void {
    const params = {
      protocolVersion: 2,
      info: { name: "dragoman-page", title: "Dragoman in a browser", version: "1" },
      capabilities: { elicitation: { form: {} } },
    };
    this.received = 0;
    this.#sent = Math.max(this.#sent, 1); // more, where something waits for this
    socket.send(JSON.stringify({ ...ASKED, id: `${this.#life}-hello`, method: "initialize", params }));
  }

  #receive(data: string): void {
    let message: Message;
    try {
      message = JSON.parse(data);
    } catch {
      return;
    }
    if (message.method === "_dragoman/resumed") return this.#resumed(message.params.received);
    if (message.method === "_dragoman/gap") {
      this.received += message.params.missed;
      return this.on.gap();
    }
    this.received += 1;
    if (message.method === undefined) this.#receiveAnswer(message);
    else if (message.method === "session/update") this.on.update(message.params, this.received);
    else if (message.method === "_gateway/missed") this.on.missed(message.params, this.received);
    else if (message.method === "$/cancel_request") this.on.withdrawn(message.params?.requestId);
    else if (message.id !== undefined) this.on.ask(message.id, message.method, message.params);
  }

  #receiveAnswer(message: Message): void {
    const id = message.id!;
    if (id === `${this.#life}-hello`) return this.#met(message);
    const waiting = this.#waiting.get(id);
    const earlier = this.memory.forget(id);
    const sessionId = waiting && ANSWERED_WITH_OPTIONS.has(waiting.method) ? waiting.params.sessionId : earlier;
    if (sessionId && message.result) this.on.options(sessionId, message.result.configOptions ?? [], this.received);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    this.#arrived(waiting.number);
    if (message.error) waiting.reject(new RequestFailed(message.error));
    else waiting.resolve(message.result);
  }

  #met(message: Message): void {
    if (message.error) return this.on.state({ is: "refused", why: failureText(message.error) });
    this.connection = message.result.connectionId;
    this.#failures = 0;
    this.#open();
    this.on.fresh(message.result);
  }

  #open(): void {
    this.#greeted = this.ready = true;
    for (const [, text] of this.#kept) this.#socket!.send(text);
    this.on.state({ is: "connected" });
  }

  #resumed(received: number): void {
    if (this.#restoring) {
      this.#sent = received;
      this.#kept = this.#kept.map(([, text]) => [++this.#sent, text]);
      this.#restoring = false;
      this.on.restored(received);
    }
    const first = this.#kept[0]?.[0] ?? this.#sent + 1;
    if (received + 1 < first) return this.#forget();
    this.#arrived(received);
    this.#failures = 0;
    this.#open();
  }

  #send(message: object): number {
    const text = JSON.stringify(message);
    // Before the greeting is answered there is a number 1 to come, which is the greeting.
    const number = (this.#sent = Math.max(this.#sent, 1) + 1);
    this.#kept.push([number, text]);
    this.#size += text.length;
    while (this.#size > KEPT && this.#kept.length > 1) this.#size -= this.#kept.shift()![1].length;
    if (this.ready && this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text); // else it is sent again
    return number;
  }

  #arrived(number: number): void {
    while (this.#kept.length && this.#kept[0]![0] <= number) this.#size -= this.#kept.shift()![1].length;
  }

  // -- coming back ---------------------------------------------------------------------------------------------------

  async #dropped(opened: boolean, code: number): Promise<void> {
    this.ready = false;
    if (this.#closed) return;
    if (FORGOTTEN.has(code)) this.#forget();
    else if (!opened || !this.#greeted) {
      // A browser does not say why a WebSocket was refused; ask in a way that does.
      const status = await post("/me").then((answer) => answer.status, () => 0);
      if (this.#closed) return;
      if (status === 401 || status === 403) return this.on.loggedOut();
      if (status === 200 && this.connection !== null) this.#forget();
    }
    const pause = PAUSES[Math.min(this.#failures++, PAUSES.length - 1)]!;
    this.on.state({ is: "connecting", retryAt: this.#failures > 1 ? Date.now() + pause : null });
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), pause);
  }

  /** Try at once, if we wait for the next attempt. */
  #reconnectNow(): void {
    if (!this.#timer || document.hidden) return;
    clearTimeout(this.#timer);
    this.#connect();
  }

  #forget(): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.close(4000);
    this.connection = null;
    this.#restoring = false;
    const waiting = this.#waiting;
    this.#waiting = new Map();
    this.#sent = 0;
    this.#kept = [];
    this.#size = 0;
    this.#greeted = this.ready = false;
    this.on.lost();
    this.#giveUp(waiting);
  }

  #giveUp(waiting = this.#waiting): void {
    for (const { reject } of waiting.values()) reject(new RequestFailed(LOST));
    waiting.clear();
  }
}
