// A tool call: what it does, whether it is done and how long it took, and below that what it changed or printed.

import { Icon, type IconName } from "../app/Icon";
import { useApp } from "../app/context";
import type { CallItem, Terminal } from "../state/session";
import type { CallContent } from "../state/types";
import { visible } from "../text/visible";
import { duration } from "../text/words";
import { ContentView, JsonView } from "./Content";
import { useFold } from "./fold";
import { DiffView, OutputView } from "./rich";

const OPEN_KINDS = new Set(["edit", "execute", "delete", "move"]);
const MOST_CALLS = 200; // of a helper, in the page
const STATUSES: Record<string, string> = {
  pending: "waiting",
  in_progress: "running",
  paused: "paused",
  completed: "",
  failed: "failed",
  cancelled: "stopped",
};
const ICONS: Record<string, IconName> = {
  read: "read", edit: "edit", delete: "delete", move: "move", search: "search", execute: "execute", think: "think", fetch: "fetch",
};

/** `isAsked`: a question about it is open, which shows the same. `calls`: of the helper that it has started. */
export function CallCard({ item, isAsked, calls = [] }: { item: CallItem; isAsked: boolean; calls?: readonly CallItem[] }) {
  const { call } = item;
  const kind = call.kind ?? "other";
  const status = call.status ?? "";
  const { isOpen, toggle } = useFold(item.key, (OPEN_KINDS.has(kind) && !isAsked) || status === "failed");
  const contents = call.content ?? [];
  const took = item.startedAt !== null && item.endedAt !== null ? item.endedAt - item.startedAt : null;
  return (
    <details class="item call" data-status={status} data-kind={kind} open={isOpen}>
      <summary onClick={toggle}>
        <Icon name={ICONS[kind] ?? "tool"} size={16} />
        <span class="name">{visible(call.title || call.name || "…")}</span>
        {took !== null && took >= 1000 && <span class="took">{duration(took)}</span>}
        <span class="status">{STATUSES[status] ?? visible(status)}</span>
        {status === "completed" && <span class="done"><Icon name="check" size={16} /><span class="sr-only">done</span></span>}
      </summary>
      {isOpen && (
        <div class="body">
          {calls.length > 0 && <HelperCalls of={item} calls={calls} />}
          {contents.map((content, index) => <CallContentView key={index} content={content} item={item} />)}
          {contents.length === 0 && calls.length === 0 && call.rawInput !== undefined && <JsonView value={call.rawInput} />}
        </div>
      )}
    </details>
  );
}

/** A branch of the tree: what a helper does; open while it works, folded afterwards unless a person has opened it. */
function HelperCalls({ of, calls }: { of: CallItem; calls: readonly CallItem[] }) {
  const { isOpen, toggle } = useFold(`${of.key} calls`, of.call.status === "in_progress");
  return (
    <details class="helper-calls" open={isOpen}>
      <summary onClick={toggle}>{calls.length === 1 ? "1 call" : `${calls.length} calls`} of this helper</summary>
      {isOpen && calls.length > MOST_CALLS && <p class="muted small">Earlier calls are not shown.</p>}
      {isOpen && <ul>{calls.slice(-MOST_CALLS).map((one) => <li key={one.key}><CallCard item={one} isAsked={false} /></li>)}</ul>}
    </details>
  );
}

function CallContentView({ content, item }: { content: CallContent; item: CallItem }) {
  switch (content.type) {
    case "diff": return <DiffView diff={content} />;
    case "terminal": return <TerminalView terminal={item.terminals.get(content.terminalId)!} title={item.call.title} />;
    case "content": return <ContentView block={content.content} />;
    default: return <JsonView value={content} />;
  }
}

/** `title`: what stands above it already. */
export function TerminalView({ terminal, title }: { terminal: Terminal; title?: string | null | undefined }) {
  const { store } = useApp();
  const { command, exit, canCancel, terminalId } = terminal;
  const cancel = () =>
    void store.tried(store.request("terminal/cancel", { sessionId: store.current!.state.id, terminalId }));
  return (
    <div class="terminal">
      {command && command !== title && <div class="command">$ {visible(command)}</div>}
      <OutputView text={terminal.text} isCut={terminal.isCut} isRunning={exit === null} />
      {exitText(exit) && <div class="exit">{exitText(exit)}</div>}
      {canCancel && exit === null && (
        <button type="button" class="button" onClick={cancel}><Icon name="stop" size={16} /> Stop this command</button>
      )}
    </div>
  );
}

function exitText(exit: Terminal["exit"]): string {
  if (!exit) return "";
  if (exit.signal) return `ended by ${visible(exit.signal)}`;
  return exit.exitCode ? `exit code ${exit.exitCode}` : "";
}
