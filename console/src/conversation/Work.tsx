// What goes on beside the conversation: commands in the background, and helpers of the agent.

import { Icon } from "../app/Icon";
import { useApp } from "../app/context";
import type { SessionState, Subagent, Terminal } from "../state/session";
import { harmless, visible } from "../text/visible";

const STATES: Record<string, string> = { running: "works", requires_action: "waits for an answer", idle: "done" };

export function WorkStrip({ state }: { state: SessionState }) {
  const commands = state.backgroundCommands;
  const helpers = [...state.subagents.values()];
  const running = helpers.filter((helper) => helper.state !== "idle").length;
  if (!commands.length && !running) return null;
  const parts = [
    commands.length && `${commands.length} ${commands.length === 1 ? "command" : "commands"} in the background`,
    running && `${running} ${running === 1 ? "helper" : "helpers"} at work`,
  ];
  return (
    <details id="work" class="strip">
      <summary><Icon name="execute" size={16} /> <span>{parts.filter(Boolean).join(", ")}</span></summary>
      <ul>
        {commands.map((terminal) => <Command key={terminal.terminalId} terminal={terminal} session={state.id} />)}
        {helpers.map((helper) => <Helper key={helper.sessionId} helper={helper} />)}
      </ul>
    </details>
  );
}

function Command({ terminal: { terminalId, command, canCancel }, session }: { terminal: Terminal; session: string }) {
  const { store } = useApp();
  const stop = () => void store.tried(store.request("terminal/cancel", { sessionId: session, terminalId }));
  return (
    <li>
      <code class="ellipsis">{visible(command)}</code>
      {canCancel && store.mayPrompt && (
        <button type="button" class="button quiet" onClick={stop}><Icon name="stop" size={16} /> Stop</button>
      )}
    </li>
  );
}

function Helper({ helper: { title, description, state } }: { helper: Subagent }) {
  return (
    <li>
      <span class="ellipsis">{harmless(title || "Helper")} <span class="muted">{harmless(description)}</span></span>
      <span class="muted small">{STATES[state] ?? harmless(state)}</span>
    </li>
  );
}
