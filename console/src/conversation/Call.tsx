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

/** `isAsked`: a question about it is open, which shows the same. */
export function CallCard({ item, isAsked }: { item: CallItem; isAsked: boolean }) {
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
          {contents.map((content, index) => <CallContentView key={index} content={content} item={item} />)}
          {contents.length === 0 && call.rawInput !== undefined && <JsonView value={call.rawInput} />}
        </div>
      )}
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
