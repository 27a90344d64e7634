// ACP over one WebSocket that comes back by itself: nothing is lost, nothing is heard twice.
//
// The n-th message of a connection has the number n, on both ways. After a drop we name the last one we have, are told
// how many of ours have arrived, and send the rest again. Where the server has forgotten the connection a new one is
// made: whatever still waited for an answer fails (`lost`), and who asks opens its sessions again (`fresh`).

import { failureText } from "./failure.js";
import { forgetRequest, pageKey, rememberRequest } from "./memory.js";

const KEPT = 4 * 1024 * 1024; // characters sent and perhaps not arrived
const PAUSES = [0, 250, 500, 1000, 2000, 5000, 10000]; // milliseconds before each attempt in a row, then the last
const FORGOTTEN = new Set([1009, 4004, 4009]); // too large, gone, taken over by another tab: coming back ends the same
const ASKED = { jsonrpc: "2.0" };
const ANSWERED_WITH_OPTIONS = new Set(["session/resume", "session/set_config_option"]);

export class Failed extends Error {
  constructor(error) {
    super(failureText(error));
    this.code = error.code;
    this.data = error.data;
  }
}

const LOST = { code: 0, message: "The connection was lost. What was asked may have been done or not." };

/** POST to this server as our own page does it: with the page key, since a cookie alone opens nothing. */
export function post(path, headers = {}, body = undefined) {
  const ours = { "X-Dragoman": "1", ...(pageKey() && { "X-Dragoman-Page-Key": pageKey() }) };
  return fetch(path, { method: "POST", headers: { ...ours, ...headers }, credentials: "same-origin", body });
}

/** What a WebSocket of ours offers: a page can set no header there, so its key is one of the subprotocols. */
function subprotocols() {
  return pageKey() ? ["acp", `dragoman.${pageKey()}`] : ["acp"];
}

/**
 * `on` has: update(params, number), options(sessionId, options, number), missed(params, number),
 * ask(id, method, params), withdrawn(id), state(word), lost(), fresh(), gap(), restored(received), loggedOut().
 * `restored` continues a connection that this tab had before it was reloaded. Answers to requests of before the reload
 * are dropped then, but for the options in them: an agent need not send those in an update as well.
 */
export class Wire {
  /** `path` is where the agent is; `restored` the connection of this tab before a reload, and the last message of it. */
  constructor(on, path, restored = null) {
    this.on = on;
    this.path = path;
    this.connection = restored?.connection ?? null;
    this.heard = restored?.after ?? 0;
    this.restoring = restored !== null;
    this.life = Math.random().toString(36).slice(2, 10); // ids of an earlier life of this tab mean nothing now
    this.failures = 0;
    this.reset();
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
    this.connect();
  }

  // -- what is said --------------------------------------------------------------------------------------------------

  request(method, params) {
    const id = `${this.life}-${++this.ids}`;
    if (ANSWERED_WITH_OPTIONS.has(method)) rememberRequest(id, params.sessionId);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, method, params, number: this.send({ ...ASKED, id, method, params }) });
    });
  }

  notify(method, params) {
    this.send({ ...ASKED, method, params });
  }

  answer(id, result) {
    return this.send({ ...ASKED, id, result });
  }

  refuse(id) {
    this.send({ ...ASKED, id, error: { code: -32601, message: "This page cannot do that." } });
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close(4000); // a drop: what runs goes on
    this.giveUp();
  }

  // -- one connection ------------------------------------------------------------------------------------------------

  reset() {
    this.ids ??= 0;
    this.sent = 0; // how many messages of ours this connection had
    this.kept = []; // [number, text], those that may not have arrived
    this.size = 0;
    this.greeted = false;
    this.ready = false; // the socket is open, and the server knows what we have
    this.waiting ??= new Map();
  }

  connect() {
    this.timer = null;
    if (this.closed) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = this.connection === null ? "" : `?connection=${encodeURIComponent(this.connection)}&after=${this.heard}`;
    const socket = (this.socket = new WebSocket(`${scheme}://${location.host}${this.path}${query}`, subprotocols()));
    let opened = false;
    socket.onopen = () => {
      opened = true;
      if (this.connection === null) this.greet();
    };
    socket.onmessage = (event) => socket === this.socket && this.hear(event.data);
    socket.onclose = (event) => socket === this.socket && this.dropped(opened, event.code);
  }

  greet() {
    const params = {
      protocolVersion: 2,
      info: { name: "dragoman-page", title: "Dragoman in a browser", version: "1" },
      capabilities: { elicitation: { form: {} } },
    };
    this.heard = 0;
    this.sent = Math.max(this.sent, 1); // more, where something waits for this
    this.socket.send(JSON.stringify({ ...ASKED, id: `${this.life}-hello`, method: "initialize", params }));
  }

  hear(data) {
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return;
    }
    if (message.method === "_dragoman/resumed") return this.resumed(message.params.received);
    if (message.method === "_dragoman/gap") {
      this.heard += message.params.missed;
      return this.on.gap();
    }
    this.heard += 1;
    if (message.method === undefined) this.heardAnswer(message);
    else if (message.method === "session/update") this.on.update(message.params, this.heard);
    else if (message.method === "_gateway/missed") this.on.missed(message.params, this.heard);
    else if (message.method === "$/cancel_request") this.on.withdrawn(message.params?.requestId);
    else if (message.id !== undefined) this.on.ask(message.id, message.method, message.params);
  }

  heardAnswer(message) {
    if (message.id === `${this.life}-hello`) return this.met(message);
    const waiting = this.waiting.get(message.id);
    const earlier = forgetRequest(message.id);
    const sessionId = ANSWERED_WITH_OPTIONS.has(waiting?.method) ? waiting.params.sessionId : earlier;
    if (sessionId && message.result) this.on.options(sessionId, message.result.configOptions ?? [], this.heard);
    if (waiting === undefined) return;
    this.waiting.delete(message.id);
    this.arrived(waiting.number);
    if (message.error) waiting.reject(new Failed(message.error));
    else waiting.resolve(message.result);
  }

  met(message) {
    if (message.error) return this.on.state(failureText(message.error));
    this.connection = message.result.connectionId;
    this.failures = 0;
    this.open();
    this.on.fresh(message.result);
  }

  open() {
    this.greeted = this.ready = true;
    for (const [, text] of this.kept) this.socket.send(text);
    this.on.state("");
  }

  resumed(received) {
    if (this.restoring) {
      this.sent = received;
      this.kept = this.kept.map(([, text]) => [++this.sent, text]);
      this.restoring = false;
      this.on.restored(received);
    }
    const first = this.kept.length ? this.kept[0][0] : this.sent + 1;
    if (received + 1 < first) return this.forget();
    this.arrived(received);
    this.failures = 0;
    this.open();
  }

  send(message) {
    const text = JSON.stringify(message);
    // Before the greeting is answered there is a number 1 to come, which is the greeting.
    const number = (this.sent = Math.max(this.sent, 1) + 1);
    this.kept.push([number, text]);
    this.size += text.length;
    while (this.size > KEPT && this.kept.length > 1) this.size -= this.kept.shift()[1].length;
    if (this.ready && this.socket.readyState === WebSocket.OPEN) this.socket.send(text); // else it is sent again
    return number;
  }

  arrived(number) {
    while (this.kept.length && this.kept[0][0] <= number) this.size -= this.kept.shift()[1].length;
  }

  // -- coming back ---------------------------------------------------------------------------------------------------

  async dropped(opened, code) {
    this.ready = false;
    if (this.closed) return;
    this.on.state("connecting…");
    if (FORGOTTEN.has(code)) this.forget();
    else if (!opened || !this.greeted) {
      // A browser does not say why a WebSocket was refused; ask in a way that does.
      const status = await post("/me").then((answer) => answer.status, () => 0);
      if (this.closed) return;
      if (status === 401 || status === 403) return this.on.loggedOut();
      if (status === 200 && this.connection !== null) this.forget();
    }
    const pause = PAUSES[Math.min(this.failures++, PAUSES.length - 1)];
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), pause);
  }

  hurry() {
    if (this.timer) {
      clearTimeout(this.timer);
      this.connect();
    }
  }

  forget() {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.close(4000);
    this.connection = null;
    this.restoring = false;
    const waiting = this.waiting;
    this.waiting = new Map();
    this.reset();
    this.on.lost();
    this.giveUp(waiting);
  }

  giveUp(waiting = this.waiting) {
    for (const { reject } of waiting.values()) reject(new Failed(LOST));
    waiting.clear();
  }
}
