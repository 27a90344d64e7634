// The side: what can be gone to, and the last sessions.

import { useEffect, useRef } from "preact/hooks";
import type { SessionInfo } from "../state/types";
import type { Activity } from "../state/activity";
import type { SessionStore } from "../state/store";
import { harmless, visible } from "../text/visible";
import { shortPath, when } from "../text/words";
import { useActivity, useApp, useSettings, useStore } from "./context";
import { Icon, Mark } from "./Icon";
import { href, useRoute } from "./router";
import { SCREENS } from "./screens";

export function Side({ isOpen, close }: { isOpen: boolean; close: () => void }) {
  const { me, store, logOut } = useApp();
  const { screen: current } = useRoute();
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isOpen) (element.current?.querySelector<HTMLElement>("#list a") ?? element.current?.querySelector<HTMLElement>("#make"))?.focus();
  }, [isOpen]);
  const makeNew = () => {
    close();
    void store.startAnew();
  };
  return (
    <nav id="sessions" aria-label="Sessions" ref={element}>
      <a class="brand" href={href("")} onClick={close}>
        <Mark /> <span>Dragoman</span>
      </a>
      <button class="button primary" id="make" disabled={!store.mayPrompt} onClick={makeNew}>
        <Icon name="plus" size={18} /> New session
      </button>
      <ul class="places">
        {SCREENS.filter((screen) => !screen.isHidden && (!screen.scope || me.scopes.includes(screen.scope))).map((screen) => (
          <li key={screen.name}>
            <a href={href(screen.name)} aria-current={screen.name === current ? "page" : undefined}>
              {screen.icon && <Icon name={screen.icon} size={18} />} {screen.title}
              {screen.name === "inbox" && <Waiting />}
            </a>
          </li>
        ))}
      </ul>
      <SessionList close={close} />
      <footer>
        <span id="who" class="ellipsis muted" title="Who you are on this server">{visible(me.name)}</span>
        <button id="logout" class="button quiet" onClick={logOut}>
          <Icon name="logout" size={18} /> Log out
        </button>
      </footer>
    </nav>
  );
}

/** How many questions wait, in all sessions. */
function Waiting() {
  const { waiting } = useActivity();
  if (!waiting) return null;
  return <span class="mark waits" id="waiting">{waiting}<span class="sr-only"> waiting</span></span>;
}

/** Where a session works: its folder, or the worktree that was made for it. */
function place({ cwd, _meta }: SessionInfo): string {
  const worktree = (_meta?.["dragoman/worktree"] as { name?: string } | undefined)?.name;
  return worktree ? `worktree ${harmless(worktree)}` : visible(shortPath(cwd));
}

/** What a session does: of one that this tab follows it is known at once, of others since the last look. */
function stateOf(sessionId: string, store: SessionStore, activity: Activity): "waiting" | "running" | null {
  const followed = store.followed.get(sessionId);
  if (!followed) return activity.of(sessionId)?.state ?? null;
  return followed.state.state === "requires_action" ? "waiting" : followed.state.isRunning ? "running" : null;
}

function StateMark({ state }: { state: "waiting" | "running" | null }) {
  if (state === null) return null;
  return state === "waiting" ? <span class="mark waits">asks</span> : <span class="mark runs">works</span>;
}

function SessionList({ close }: { close: () => void }) {
  const store = useStore();
  const activity = useActivity();
  useSettings();
  const shown = store.current?.state.id;
  const waiting = new Set([...store.questions.values()].map((question) => question.params.sessionId));
  return (
    <div class="list">
      <h2 class="small muted" id="list-title">Sessions</h2>
      {store.isListed && store.sessions.length === 0 && <p class="muted small">None yet. What you begin is listed here.</p>}
      <ol id="list" aria-labelledby="list-title">
        {store.sessions.map((session) => (
          <li key={session.sessionId}>
            <a href={href("session", session.sessionId)} data-session={session.sessionId} onClick={close}
              aria-current={session.sessionId === shown ? "true" : undefined}>
              <span class="name ellipsis">{harmless(session.title || "Untitled")}</span>
              <StateMark state={waiting.has(session.sessionId) ? "waiting" : stateOf(session.sessionId, store, activity)} />
              <span class="where ellipsis muted" title={visible(session.cwd)}>{place(session)}</span>
              <time class="muted" dateTime={session.updatedAt ?? ""}>{when(session.updatedAt)}</time>
            </a>
          </li>
        ))}
      </ol>
      {store.hasMore && <button id="more" class="button quiet" onClick={() => void store.list(true)}>More</button>}
    </div>
  );
}
