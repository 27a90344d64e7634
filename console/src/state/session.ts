// One session as its updates describe it: the one reducer of the console. `apply` folds an update of ACP version 2 into
// the state; everything is kept by its id and patched: what is absent stays, null clears, a value replaces. So a session
// that is told again is the same. Nothing here draws, asks or waits.
//
// An item is replaced by another object when it changes, so whoever draws it compares by identity.

import { failureText } from "../wire/failure";
import { Output } from "./output";
import type * as acp from "./types";

const ITEMS = 20_000; // kept at once; older ones are let go
const PLANS = 20; // more are no plan
const TEXT = 2 * 1024 * 1024; // characters of one message
const SUBAGENTS = 200;
const ENDS: Record<string, string> = {
  cancelled: "Stopped.",
  refusal: "The agent refused; it will not remember that message.",
  max_tokens: "The answer was cut: the model may not say more at once.",
  max_turn_requests: "The turn was cut: the model may not be asked more often.",
};
const COMPACTIONS: Record<string, string> = {
  in_progress: "is being summed up",
  completed: "was summed up",
  failed: "could not be summed up",
};
const ENDED_CALLS = new Set(["completed", "failed", "cancelled"]);

export type MessageKind = "user" | "agent" | "thought";
export type Severity = "info" | "warning" | "error";

export interface MessageItem {
  readonly type: MessageKind;
  readonly key: string;
  readonly id: string;
  readonly blocks: readonly acp.ContentBlock[];
  /** Text still arrives. */
  readonly isOpen: boolean;
}

export interface CallItem {
  readonly type: "call";
  readonly key: string;
  readonly call: acp.ToolCall;
  /** The outputs of its commands, by id. */
  readonly terminals: ReadonlyMap<string, Terminal>;
  /** When it began to run and when it ended, by the clock of this browser; null where that was before. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export interface NoticeItem {
  readonly type: "notice";
  readonly key: string;
  readonly severity: Severity;
  readonly title: string;
  readonly description: string;
  /** What may be tried again: the turn that failed. */
  readonly isTurnFailure: boolean;
}

export type Item = MessageItem | CallItem | NoticeItem;

/** A command that runs, or ran. */
export interface Terminal {
  readonly terminalId: string;
  readonly command: string;
  readonly cwd: string;
  readonly text: string;
  readonly isCut: boolean;
  readonly exit: { exitCode?: number | null; signal?: string | null } | null;
  readonly canCancel: boolean;
}

/** A session of a helper of the agent. */
export interface Subagent {
  readonly sessionId: string;
  readonly title: string;
  readonly description: string;
  readonly state: string;
}

export type TurnState = "unknown" | "running" | "requires_action" | "idle" | string;

export class SessionState {
  items: Item[] = [];
  /** Older items were let go. */
  isShortened = false;
  state: TurnState = "unknown";
  title = "";
  cwd = "";
  options: acp.Option[] = [];
  /** The number of the message that had the options. */
  optionsAt = 0;
  commands: acp.Command[] = [];
  mentions: [string, string][] = [];
  plans = new Map<string, acp.Plan>();
  usage: acp.Usage | null = null;
  context: acp.Context | null = null;
  subagents = new Map<string, Subagent>();
  background: { type: string; terminalId?: string; toolCallId?: string; sessionId?: string }[] = [];
  /** When the turn that runs began, by the clock of this browser. */
  turnStartedAt: number | null = null;
  /** Counts changes, for whoever draws. */
  version = 0;

  #places = new Map<string, number>(); // key of an item -> its number since the beginning
  #dropped = 0; // items that were let go
  #outputs = new Map<string, Output>();
  #shownIn = new Map<string, string>(); // id of a terminal -> key of the call that shows it
  #terminals = new Map<string, Terminal>();
  #sizes = new Map<string, number>(); // characters of messages
  #lines = 0;
  #open: string | null = null; // key of the message that grows

  constructor(readonly id: string, private readonly now: () => number = Date.now) {}

  /** Forget what was told, but for what is known of the session itself. */
  clear(): void {
    const kept = { title: this.title, cwd: this.cwd, options: this.options, optionsAt: this.optionsAt };
    const version = this.version + 1;
    Object.assign(this, new SessionState(this.id, this.now), kept, { version });
    for (const map of [this.#places, this.#outputs, this.#shownIn, this.#terminals, this.#sizes]) map.clear();
    this.#dropped = this.#lines = 0;
    this.#open = null;
  }

  get isRunning(): boolean {
    return this.state === "running" || this.state === "requires_action";
  }

  /** The tool call of this id, if it is known. */
  call(id: string): acp.ToolCall | undefined {
    const item = this.#find(`call ${id}`);
    return item?.type === "call" ? item.call : undefined;
  }

  /** The command of this id, if it is known. */
  terminal(id: string): Terminal | undefined {
    return this.#terminals.get(id);
  }

  /** Commands that still run though the call that has begun them is over. */
  get backgroundCommands(): Terminal[] {
    return [...this.#terminals.values()].filter(({ terminalId, exit, command }) => {
      const item = this.#find(this.#shownIn.get(terminalId) ?? "");
      return exit === null && command !== "" && item?.type === "call" && ENDED_CALLS.has(item.call.status ?? "");
    });
  }

  // -- updates -------------------------------------------------------------------------------------------------------

  /** Fold an update in. `number`: of the message in its connection. */
  apply(update: any, number: number): void {
    this.version += 1;
    switch (update.sessionUpdate) {
      case "user_message_chunk": return this.#append("user", update.messageId, update.content);
      case "agent_message_chunk": return this.#append("agent", update.messageId, update.content);
      case "agent_thought_chunk": return this.#append("thought", update.messageId, update.content);
      case "user_message": return this.#patchMessage("user", update);
      case "agent_message": return this.#patchMessage("agent", update);
      case "agent_thought": return this.#patchMessage("thought", update);
      case "tool_call_update": return this.#patchCall(update);
      case "tool_call_content_chunk": return this.#appendToCall(update.toolCallId, update.content);
      case "terminal_update": return this.#patchTerminal(update);
      case "terminal_output_chunk": return this.#appendOutput(update.terminalId, update.data);
      case "plan_update": return this.#setPlan(update.plan);
      case "plan_removed": this.plans.delete(update.planId); return;
      case "session_info_update": if ("title" in update) this.title = update.title ?? ""; return;
      case "config_option_update": return this.setOptions(update.configOptions, number);
      case "available_commands_update": return this.setCommands(update.availableCommands, update._meta);
      case "usage_update": this.context = { ...(this.context?.cost && { cost: this.context.cost }), ...update }; return; // a cost that is absent stays
      case "subagent_update": return this.#patchSubagent(update);
      case "notice": this.notice(severity(update.severity), update.title, update.description ?? ""); return;
      case "compaction_update": return this.#compact(update);
      case "state_update": return this.#enter(update);
      default: return; // what a newer agent says and this console does not know
    }
  }

  /** Take options of an update or an answer. After a reload both are repeated: those of older messages do not count. */
  setOptions(options: acp.Option[], number: number): void {
    if (number <= this.optionsAt) return;
    this.options = options;
    this.optionsAt = number;
    this.version += 1;
  }

  setCommands(commands: acp.Command[] | undefined, meta?: Record<string, unknown> | null): void {
    if (!commands) return;
    this.commands = commands.filter((command) => typeof command.name === "string");
    const mentions = meta?.["dragoman/mentions"];
    if (Array.isArray(mentions)) this.mentions = mentions.filter((one) => Array.isArray(one) && one.length === 2);
    this.version += 1;
  }

  /** Add a line of our own, or one of the agent's notices. */
  notice(severity: Severity, title: string, description = "", isTurnFailure = false): void {
    const key = `line-${++this.#lines}`;
    this.#put({ type: "notice", key, severity, title: String(title ?? ""), description, isTurnFailure });
    this.version += 1;
  }

  // -- messages ------------------------------------------------------------------------------------------------------

  #message(kind: MessageKind, id: string): MessageItem {
    const key = `${kind} ${id}`;
    const found = this.#find(key) as MessageItem | undefined;
    return found ?? this.#put({ type: kind, key, id, blocks: [], isOpen: this.isRunning || this.state === "unknown" });
  }

  #append(kind: MessageKind, id: string, block: acp.ContentBlock): void {
    const message = this.#message(kind, id);
    this.#replace({ ...message, blocks: this.#with(message.key, message.blocks, block) });
  }

  /** The blocks with one more; text goes on in the last one. */
  #with(key: string, blocks: readonly acp.ContentBlock[], block: acp.ContentBlock): readonly acp.ContentBlock[] {
    if (block.type !== "text") return [...blocks, block];
    const size = this.#sizes.get(key) ?? 0;
    const text = String(block.text).slice(0, TEXT - size);
    this.#sizes.set(key, size + text.length);
    const last = blocks.at(-1);
    if (last?.type !== "text") return [...blocks, { type: "text", text }];
    return [...blocks.slice(0, -1), { type: "text", text: last.text + text }];
  }

  #patchMessage(kind: MessageKind, update: any): void {
    const message = this.#message(kind, update.messageId);
    if (!("content" in update)) return;
    this.#sizes.delete(message.key);
    let blocks: readonly acp.ContentBlock[] = [];
    for (const block of update.content ?? []) blocks = this.#with(message.key, blocks, block);
    this.#replace({ ...message, blocks });
  }

  // -- tool calls and commands ---------------------------------------------------------------------------------------

  #patchCall(update: any): void {
    const { sessionUpdate: _, ...fields } = update;
    const key = `call ${update.toolCallId}`;
    const before = this.#find(key) as CallItem | undefined;
    const call: acp.ToolCall = { ...before?.call, toolCallId: update.toolCallId };
    for (const [name, value] of Object.entries(fields)) (call as any)[name] = value ?? undefined;
    const begun = before?.startedAt ?? (call.status === "in_progress" && this.isRunning ? this.now() : null);
    const ended = before?.endedAt ?? (begun !== null && ENDED_CALLS.has(call.status ?? "") ? this.now() : null);
    this.#setCall(before, { type: "call", key, call, terminals: new Map(), startedAt: begun, endedAt: ended });
  }

  #appendToCall(id: string, content: acp.CallContent): void {
    const key = `call ${id}`;
    const before = this.#find(key) as CallItem | undefined;
    const call = { ...(before?.call ?? { toolCallId: id }) };
    call.content = [...(call.content ?? []), content];
    const times = { startedAt: before?.startedAt ?? null, endedAt: before?.endedAt ?? null };
    this.#setCall(before, { type: "call", key, call, terminals: new Map(), ...times });
  }

  #setCall(before: CallItem | undefined, item: CallItem): void {
    const terminals = new Map<string, Terminal>();
    for (const content of item.call.content ?? []) {
      if (content.type !== "terminal") continue;
      this.#shownIn.set(content.terminalId, item.key);
      terminals.set(content.terminalId, this.#terminals.get(content.terminalId) ?? newTerminal(content.terminalId));
    }
    if (before) this.#replace({ ...item, terminals });
    else this.#put({ ...item, terminals });
  }

  #patchTerminal(update: any): void {
    const id: string = update.terminalId;
    let terminal = this.#terminals.get(id) ?? newTerminal(id);
    if ("command" in update) terminal = { ...terminal, command: update.command ?? "" };
    if ("cwd" in update) terminal = { ...terminal, cwd: update.cwd ?? "" };
    if ("exitStatus" in update) terminal = { ...terminal, exit: update.exitStatus ?? null };
    if ("capabilities" in update) terminal = { ...terminal, canCancel: Boolean(update.capabilities?.cancel) };
    if ("output" in update) {
      const output = new Output();
      this.#outputs.set(id, output);
      if (update.output) output.append(update.output.data);
      terminal = { ...terminal, text: output.text, isCut: output.isCut };
    }
    this.#setTerminal(terminal);
  }

  #appendOutput(id: string, data: string): void {
    let output = this.#outputs.get(id);
    if (!output) this.#outputs.set(id, (output = new Output()));
    output.append(data);
    const terminal = this.#terminals.get(id) ?? newTerminal(id);
    this.#setTerminal({ ...terminal, text: output.text, isCut: output.isCut });
  }

  #setTerminal(terminal: Terminal): void {
    this.#terminals.set(terminal.terminalId, terminal);
    const item = this.#find(this.#shownIn.get(terminal.terminalId) ?? "");
    if (item?.type !== "call") return;
    this.#replace({ ...item, terminals: new Map(item.terminals).set(terminal.terminalId, terminal) });
  }

  // -- what stands around --------------------------------------------------------------------------------------------

  #setPlan(plan: acp.Plan): void {
    this.plans.set(plan.planId, plan);
    if (this.plans.size > PLANS) this.plans.delete(this.plans.keys().next().value!);
  }

  #patchSubagent(update: any): void {
    const before = this.subagents.get(update.sessionId);
    const said = (name: string) => (name in update ? String(update[name] ?? "") : undefined);
    this.subagents.set(update.sessionId, {
      sessionId: update.sessionId,
      title: said("title") ?? before?.title ?? "",
      description: said("description") ?? before?.description ?? "",
      state: "state" in update ? update.state?.state ?? "unknown" : before?.state ?? "unknown",
    });
    if (this.subagents.size > SUBAGENTS) this.subagents.delete(this.subagents.keys().next().value!);
  }

  #compact(update: any): void {
    const words = COMPACTIONS[update.status] ?? update.status;
    this.notice(update.status === "failed" ? "warning" : "info", `The conversation ${words}.`, update.error ?? "");
  }

  #enter(update: any): void {
    const ran = this.isRunning;
    this.state = update.state;
    if (Array.isArray(update.background)) this.background = update.background;
    if (this.isRunning && !ran) {
      this.turnStartedAt = this.now();
      // The plan of an earlier turn is part of what was: it stays where it stood.
    }
    if (update.state !== "idle") return;
    this.turnStartedAt = null;
    this.#close();
    if (update.usage) this.usage = update.usage;
    const cost = update.usage?._meta?.["dragoman/cost"]; // of an agent that knows no window
    if (cost) this.context = { ...this.context, cost };
    if (update.error) this.notice("error", failureText(update.error), "", true);
    else if (ENDS[update.stopReason]) this.notice("info", ENDS[update.stopReason]!);
  }

  // -- the list ------------------------------------------------------------------------------------------------------

  #find(key: string): Item | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.items[place - this.#dropped];
  }

  #put<T extends Item>(item: T): T {
    this.#close();
    if (item.type !== "call" && item.type !== "notice") this.#open = item.key;
    this.#places.set(item.key, this.#dropped + this.items.length);
    this.items.push(item);
    if (this.items.length > ITEMS) this.#dropOldest();
    return item;
  }

  #replace(item: Item): void {
    const place = this.#places.get(item.key);
    if (place !== undefined) this.items[place - this.#dropped] = item;
  }

  /** Another item began, or the turn ended: the message before it is whole. */
  #close(): void {
    const item = this.#open === null ? undefined : this.#find(this.#open);
    this.#open = null;
    if (item && "isOpen" in item && item.isOpen) this.#replace({ ...item, isOpen: false });
  }

  #dropOldest(): void {
    const gone = this.items.splice(0, ITEMS / 10);
    this.#dropped += gone.length;
    this.isShortened = true;
    for (const item of gone) {
      this.#places.delete(item.key);
      this.#sizes.delete(item.key);
      if (item.type !== "call") continue;
      for (const id of item.terminals.keys()) {
        for (const map of [this.#terminals, this.#outputs, this.#shownIn]) map.delete(id);
      }
    }
  }
}

function newTerminal(terminalId: string): Terminal {
  return { terminalId, command: "", cwd: "", text: "", isCut: false, exit: null, canCancel: false };
}

function severity(word: unknown): Severity {
  return word === "error" || word === "warning" ? word : "info";
}
