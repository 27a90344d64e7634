// One session as it is shown: messages, thoughts, calls of tools, terminals. Everything is kept by its id and patched:
// what is absent stays, null clears, a value replaces. So a story that is told again shows the same.

import { diffView } from "./diff.js";
import { link, make, visible } from "./dom.js";
import { failureText } from "./failure.js";
import { Markdown, markdown } from "./markdown.js";
import { Output } from "./output.js";

const ITEMS = 3000; // shown at once; older ones are let go
const PLANS = 20; // more are no plan
const TEXT = 2 * 1024 * 1024; // characters of one message
const IMAGE = 8 * 1024 * 1024; // characters of base64
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const OPEN_KINDS = new Set(["edit", "execute", "delete", "move"]);
const STATUSES = { pending: "waits", in_progress: "runs", completed: "done", failed: "failed", cancelled: "stopped" };
const ENDS = {
  cancelled: "Stopped.",
  refusal: "The agent refused; it will not remember that message.",
  max_tokens: "The answer was cut: the model may not say more at once.",
  max_turn_requests: "The turn was cut: the model may not be asked more often.",
};

export class Story {
  /** `changed` is told when something beside the transcript has changed: state, title, options, plan, usage. */
  constructor(sessionId, changed) {
    this.id = sessionId;
    this.element = make("div", { class: "story", "data-session": sessionId });
    this.changed = changed;
    this.dirty = new Set();
    this.cwd = "";
    this.options = [];
    this.optionsAt = 0; // the number of the message that had them
    this.clear();
  }

  clear() {
    this.items = new Map();
    this.calls = new Map();
    this.terminals = new Map();
    this.plans = new Map();
    this.queue = new Set(); // prompts that were sent and not taken up yet
    this.state = "unknown"; // until it is told
    this.title = "";
    this.usage = null;
    this.context = null;
    this.last = null;
    this.lines = 0;
    this.dirty.clear();
    this.element.replaceChildren();
  }

  get running() {
    return this.state === "running" || this.state === "requires_action";
  }

  // -- what is told --------------------------------------------------------------------------------------------------

  /** `number`: of the message in its connection. */
  apply(update, number) {
    switch (update.sessionUpdate) {
      case "user_message_chunk": return this.message(update.messageId, "user").add(update.content);
      case "agent_message_chunk": return this.message(update.messageId, "agent").add(update.content);
      case "agent_thought_chunk": return this.message(update.messageId, "thought").add(update.content);
      case "user_message": return this.message(update.messageId, "user").patch(update);
      case "agent_message": return this.message(update.messageId, "agent").patch(update);
      case "agent_thought": return this.message(update.messageId, "thought").patch(update);
      case "tool_call_update": return this.call(update.toolCallId).patch(update);
      case "tool_call_content_chunk": return this.call(update.toolCallId).add(update.content);
      case "terminal_update": return this.terminal(update.terminalId).patch(update);
      case "terminal_output_chunk": return this.terminal(update.terminalId).feed(update.data);
      case "plan_update": this.planned(update.plan); break;
      case "plan_removed": this.plans.delete(update.planId); break;
      case "session_info_update": if ("title" in update) this.title = update.title ?? ""; break;
      case "config_option_update": return this.setOptions(update.configOptions, number);
      case "usage_update": this.context = { cost: this.context?.cost, ...update }; break; // a cost that is absent stays
      case "notice": return this.line(`notice ${severity(update.severity)}`, update.title, update.description);
      case "compaction_update": return this.compacted(update);
      case "state_update": this.entered(update); break;
      default: return undefined; // what a newer agent says and this page does not know
    }
    return this.changed(this);
  }

  /** Take options from an update or an answer. After a reload both are repeated: those of older messages do not count. */
  setOptions(options, number) {
    if (number <= this.optionsAt) return;
    Object.assign(this, { options, optionsAt: number });
    this.changed(this);
  }

  planned(plan) {
    this.plans.set(plan.planId, plan);
    if (this.plans.size > PLANS) this.plans.delete(this.plans.keys().next().value);
  }

  entered(update) {
    this.state = update.state;
    this.over(null);
    if (update.state !== "idle") return;
    if (update.usage) this.usage = update.usage;
    const cost = update.usage?._meta?.["dragoman/cost"]; // of an agent that knows no window
    if (cost) this.context = { ...this.context, cost };
    if (update.error) this.line("notice error", failureText(update.error));
    else if (ENDS[update.stopReason]) this.line("notice info", ENDS[update.stopReason]);
  }

  compacted(update) {
    const words = { in_progress: "is being summed up", completed: "was summed up", failed: "could not be summed up" };
    this.line(update.status === "failed" ? "notice warning" : "notice info", `The conversation ${words[update.status] ?? update.status}.`, update.error);
  }

  /** A prompt that was sent; what is returned takes it away again. */
  queued(text) {
    const element = make("div", { class: "item message user queued" }, make("div", { class: "text plain" }, text));
    this.queue.add(element);
    this.element.append(element);
    return () => {
      this.queue.delete(element);
      element.remove();
    };
  }

  /** A line of our own, or of the agent's notices. */
  line(kind, title, description) {
    const more = description ? make("div", { class: "plain" }, description) : null;
    this.put(`line-${++this.lines}`, new Line(make("div", { class: `item ${kind}` }, make("strong", {}, title), more)));
  }

  // -- what there is -------------------------------------------------------------------------------------------------

  message(id, kind) {
    return this.items.get(`${kind} ${id}`) ?? this.put(`${kind} ${id}`, new Message(this, kind, id));
  }

  call(id) {
    let call = this.calls.get(id);
    if (!call) {
      call = this.put(`call ${id}`, new Call(this));
      this.calls.set(id, call);
    }
    return call;
  }

  terminal(id) {
    let terminal = this.terminals.get(id);
    if (!terminal) this.terminals.set(id, (terminal = new Terminal(this)));
    return terminal;
  }

  put(key, item) {
    this.over(item);
    this.items.set(key, item);
    const first = this.queue.values().next().value;
    this.element.insertBefore(item.element, first ?? null);
    if (this.items.size > ITEMS) {
      const [oldest, gone] = this.items.entries().next().value;
      gone.element.remove();
      this.items.delete(oldest);
      this.calls.delete(oldest.slice("call ".length));
      for (const { terminalId } of gone.seen?.content ?? []) this.terminals.delete(terminalId);
      this.element.classList.add("shortened");
    }
    return item;
  }

  /** Another item began: the one before it, if it was a thought, is folded. */
  over(next) {
    this.last?.fold?.();
    this.last = next;
  }

  // -- drawing: at most once a frame ---------------------------------------------------------------------------------

  touch(item) {
    this.dirty.add(item);
    this.changed(this, true);
  }

  draw() {
    for (const item of this.dirty) item.draw();
    this.dirty.clear();
  }
}

class Line {
  constructor(element) {
    this.element = element;
  }
}

class Message {
  constructor(story, kind, id) {
    this.story = story;
    this.kind = kind;
    this.body = make("div", { class: kind === "user" ? "text plain" : "text" });
    this.element = kind === "thought"
      ? make("details", { class: "item message thought", open: true }, make("summary", {}, "Thought"), this.body)
      : make("div", { class: `item message ${kind}` }, kind === "user" ? backButton(id) : null, this.body);
    this.size = 0;
    this.writer = null; // of the text that grows
  }

  patch(update) {
    if (!("content" in update)) return;
    this.body.replaceChildren();
    this.writer = null;
    this.size = 0;
    for (const block of update.content ?? []) this.add(block);
    if (this.kind === "thought" && !this.story.running) this.fold();
  }

  add(block) {
    if (block.type !== "text") {
      this.writer = null;
      this.body.append(contentView(block));
      return;
    }
    const text = block.text.slice(0, TEXT - this.size);
    this.size += text.length;
    if (this.writer === null) {
      const part = make("div");
      this.body.append(part);
      this.writer = this.kind === "user" ? new Plain(part) : new Markdown(part);
    }
    this.writer.append(text);
    this.story.touch(this);
  }

  draw() {
    this.writer?.render();
  }

  fold() {
    if (this.kind === "thought") this.element.open = false;
  }
}

/** What goes back to before a prompt; the page listens for it. */
const backButton = (id) => make("button", { type: "button", class: "back", "data-message": id, "aria-label": "Go back to before this prompt" });

class Plain {
  constructor(parent) {
    this.node = document.createTextNode("");
    parent.append(this.node);
    this.text = "";
  }

  append(text) {
    this.text += text;
  }

  render() {
    this.node.data = this.text;
  }
}

class Call {
  constructor(story) {
    this.story = story;
    this.seen = {};
    this.summary = make("summary");
    this.body = make("div", { class: "body" });
    this.element = make("details", { class: "item call" }, this.summary, this.body);
    this.summary.addEventListener("click", () => { this.touched = true; });
  }

  patch(update) {
    for (const [name, value] of Object.entries(update)) this.seen[name] = value ?? undefined;
    this.contents ||= "content" in update;
    this.story.touch(this);
  }

  add(content) {
    this.seen.content = [...(this.seen.content ?? []), content];
    this.contents = true;
    this.story.touch(this);
  }

  draw() {
    const { title, name, kind, status } = this.seen;
    const word = STATUSES[status] ?? status ?? "";
    this.summary.replaceChildren(
      make("span", { class: "kind" }, kind ?? "tool"),
      make("span", { class: "name" }, visible(title || name || "…")),
      make("span", { class: "status" }, word),
    );
    this.element.dataset.status = status ?? "";
    if (!this.touched) this.element.open = OPEN_KINDS.has(kind) || status === "failed";
    if (this.contents) {
      this.contents = false;
      this.body.replaceChildren(...(this.seen.content ?? []).map((content) => this.view(content)));
    }
    if (!this.body.firstChild && this.seen.rawInput !== undefined) this.body.replaceChildren(jsonView(this.seen.rawInput));
  }

  view(content) {
    if (content.type === "diff") return diffView(content);
    if (content.type === "terminal") return this.story.terminal(content.terminalId).element;
    return content.type === "content" ? contentView(content.content) : jsonView(content);
  }
}

class Terminal {
  constructor(story) {
    this.story = story;
    this.output = new Output();
    this.command = make("div", { class: "command" });
    this.screen = make("pre", { class: "screen" });
    this.exit = make("div", { class: "exit" });
    this.element = make("div", { class: "terminal" }, this.command, this.screen, this.exit);
  }

  patch(update) {
    if ("command" in update) this.command.textContent = update.command ? `$ ${visible(update.command)}` : "";
    if ("output" in update) {
      this.output.clear();
      if (update.output) this.output.feed(update.output.data);
    }
    if ("exitStatus" in update) this.exit.textContent = exitText(update.exitStatus);
    this.story.touch(this);
  }

  feed(data) {
    this.output.feed(data);
    this.story.touch(this);
  }

  draw() {
    const atEnd = this.screen.scrollTop + this.screen.clientHeight >= this.screen.scrollHeight - 8;
    this.screen.textContent = (this.output.cut ? "…\n" : "") + this.output.text;
    if (atEnd) this.screen.scrollTop = this.screen.scrollHeight;
  }
}

function exitText(status) {
  if (!status) return "";
  if (status.signal) return `ended by ${status.signal}`;
  return status.exitCode ? `exit code ${status.exitCode}` : "";
}

const severity = (word) => (word === "error" || word === "warning" ? word : "info");

/** One block of content. */
export function contentView(block) {
  switch (block.type) {
    case "text": return make("div", { class: "text" }, ...markdown(block.text.slice(0, TEXT)));
    case "image": return imageView(block);
    case "resource_link": return make("p", {}, link(block.title ?? block.name ?? block.uri, block.uri));
    case "resource": return resourceView(block.resource ?? {});
    default: return make("p", { class: "faint" }, `[${block.type}]`);
  }
}

function imageView(block) {
  const data = block.data ?? "";
  if (!IMAGES.has(block.mimeType) || data.length > IMAGE || !/^[A-Za-z0-9+/]*={0,2}$/.test(data)) {
    return make("p", { class: "faint" }, "[an image that is not shown]");
  }
  return make("img", { class: "image", alt: "", src: `data:${block.mimeType};base64,${data}` });
}

function resourceView(resource) {
  const text = typeof resource.text === "string" ? resource.text.slice(0, TEXT) : "[not text]";
  return make("details", {}, make("summary", {}, resource.uri ?? "resource"), make("pre", { class: "code" }, text));
}

export function jsonView(value) {
  return make("pre", { class: "code" }, visible(JSON.stringify(value, null, 2) ?? ""));
}
