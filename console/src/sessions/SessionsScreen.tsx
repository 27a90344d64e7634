// All sessions: found by words, folder, agent and state; renamed, put away, shared, deleted, looked at side by side.

import { useMemo, useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import { useActivity, useApp, useSettings, useStore } from "../app/context";
import { href, navigate } from "../app/router";
import { Menu, type MenuItem } from "../components/overlay/Menu";
import { search } from "../components/search/fuzzy";
import { currentAgent, goToAgent } from "../state/agents";
import { harmless, visible } from "../text/visible";
import { shortPath, when } from "../text/words";
import { keyOf, useAllSessions, type AllSessions, type ListedSession } from "./all_sessions";
import { RenameDialog } from "./RenameDialog";
import { ShareDialog } from "./ShareDialog";
import { Undo, type Undoable } from "./Undo";
import "./sessions.css";

const SHOWN = 200; // rows that are drawn; the search finds the others
const MOST_BESIDE = 4;

type State = "all" | "waiting" | "running" | "archived";
const STATES: [State, string][] = [
  ["all", "All"],
  ["waiting", "Waiting for an answer"],
  ["running", "Working"],
  ["archived", "Archived"],
];

export default function SessionsScreen() {
  const sessions = useAllSessions();
  const activity = useActivity();
  const [query, setQuery] = useState("");
  const [folder, setFolder] = useState("");
  const [agent, setAgent] = useState("");
  const [state, setState] = useState<State>("all");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [undoable, setUndoable] = useState<Undoable | null>(null);
  const [trouble, setTrouble] = useState("");
  useSettings();
  const all = sessions.all;
  const folders = useMemo(() => [...new Set(all.map(({ cwd }) => cwd))].sort(), [all.length]);
  const fitting = all.filter((one) => {
    const busy = activity.of(one.sessionId)?.state;
    if (state === "archived" ? !one.archived : one.archived) return false;
    if ((state === "waiting" || state === "running") && busy !== state) return false;
    return (!folder || one.cwd === folder) && (!agent || one.agent === agent);
  });
  const found = search(query, fitting, (one) => [one.title ?? "", one.cwd], SHOWN).map(({ item }) => item);
  const isFiltered = Boolean(query || folder || agent || state !== "all");
  const clear = () => (setQuery(""), setFolder(""), setAgent(""), setState("all"));
  const tell = (error: unknown) => setTrouble((error as Error).message);
  return (
    <div class="all-sessions">
      <div class="filters" role="search">
        <label class="field search">
          <span class="sr-only">Search sessions</span>
          <input type="search" placeholder="Search by title or folder" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
        </label>
        <Choice label="Folder" value={folder} set={setFolder} choices={[["", "Every folder"], ...folders.map((one): [string, string] => [one, visible(shortPath(one, 3))])]} />
        {sessions.agents.length > 1 && (
          <Choice label="Agent" value={agent} set={setAgent} choices={[["", "Every agent"], ...sessions.agents.map((one): [string, string] => [one, visible(one)])]} />
        )}
        <Choice label="State" value={state} set={(value) => setState(value as State)} choices={STATES} />
      </div>
      {trouble && <p role="alert" class="failure">{trouble}</p>}
      {[...sessions.troubles].map(([name, why]) => (
        <p role="alert" class="failure" key={name}>{name && `${visible(name)}: `}{why} <button class="button quiet" onClick={() => void sessions.load()}>Try again</button></p>
      ))}
      <div class="above-list">
        <p class="small muted" role="status">
          {sessions.isLoading ? "Loading…" : `${fitting.length} ${fitting.length === 1 ? "session" : "sessions"}`}
          {fitting.length > found.length && `, the first ${found.length} of them`}
        </p>
        {chosen.length > 1 && <button class="button" onClick={() => navigate(href("beside", ...chosen))}>Look at {chosen.length} side by side</button>}
      </div>
      {found.length === 0 && !sessions.isLoading ? (
        <Nothing isFiltered={isFiltered} clear={clear} />
      ) : (
        <ul class="rows">
          {found.map((one) => (
            <Row key={keyOf(one)} session={one} sessions={sessions} tell={tell} undo={setUndoable}
              isChosen={chosen.includes(one.sessionId)}
              choose={(isOn) => setChosen(isOn ? [...chosen, one.sessionId].slice(-MOST_BESIDE) : chosen.filter((id) => id !== one.sessionId))} />
          ))}
        </ul>
      )}
      <Undo undoable={undoable} end={() => setUndoable(null)} />
    </div>
  );
}

function Nothing({ isFiltered, clear }: { isFiltered: boolean; clear: () => void }) {
  const { mayPrompt } = useStore();
  if (isFiltered) {
    return <section class="nothing"><h2>No session fits</h2><p><button class="button" onClick={clear}>Show all</button></p></section>;
  }
  return (
    <section class="nothing">
      <h2>No sessions yet</h2>
      <p class="muted">A session begins with its first prompt, and is listed here from then on.</p>
      {mayPrompt && <p><a class="button primary" href={href("")}>Begin one</a></p>}
    </section>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  set: (value: string) => void;
  choices: [string, string][];
}

function Choice({ label, value, set, choices }: ChoiceProps) {
  return (
    <label class="field">
      <span class="sr-only">{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {choices.map(([one, text]) => <option key={one} value={one}>{text}</option>)}
      </select>
    </label>
  );
}

interface RowProps {
  session: ListedSession;
  sessions: AllSessions;
  tell: (error: unknown) => void;
  undo: (undoable: Undoable) => void;
  isChosen: boolean;
  choose: (isOn: boolean) => void;
}

function Row({ session, sessions, tell, undo, isChosen, choose }: RowProps) {
  const { me, store } = useApp();
  const activity = useActivity();
  const [dialog, setDialog] = useState<"" | "rename" | "share">("");
  const title = harmless(session.title || "Untitled");
  const isOwn = session.agent === currentAgent(me);
  const address = href("session", session.sessionId);
  const busy = activity.of(session.sessionId)?.state;
  const open = (event: Event) => {
    if (isOwn) return;
    event.preventDefault();
    goToAgent(store, session.agent, address);
  };
  const archive = () => sessions.setArchived(session, !session.archived).then(
    () => undo({ text: session.archived ? `“${title}” is back in the list.` : `“${title}” was archived.`,
      undo: () => sessions.setArchived({ ...session, archived: !session.archived }, session.archived).catch(tell) }), tell);
  const remove = () => {
    sessions.hide(session, true);
    undo({ text: `“${title}” was deleted.`, undo: () => sessions.hide(session, false), commit: () => void sessions.delete(session).catch(tell) });
  };
  const items: MenuItem[] = !store.mayPrompt ? [] : [
    { label: "Rename", onPick: () => setDialog("rename") },
    { label: "Share", onPick: () => setDialog("share") },
    { label: session.archived ? "Take out of the archive" : "Archive", onPick: archive },
    { label: "Delete", onPick: remove, isDangerous: true },
  ];
  return (
    <li class="row" data-session={session.sessionId}>
      {isOwn && (
        <input type="checkbox" class="choose" checked={isChosen} aria-label={`Choose ${title}, to look at it beside others`}
          onChange={(event) => choose(event.currentTarget.checked)} />
      )}
      <a href={address} onClick={open}>
        <span class="name ellipsis">{title}</span>
        <span class="small muted ellipsis" title={visible(session.cwd)}>
          {visible(shortPath(session.cwd, 3))}{sessions.agents.length > 1 && ` · ${visible(session.agent)}`}
        </span>
      </a>
      {busy === "waiting" ? <a class="mark waits" href={href("inbox")}>asks</a> : busy === "running" ? <span class="mark runs">works</span> : null}
      <time class="small muted" dateTime={session.updatedAt ?? ""}>{when(session.updatedAt)}</time>
      {items.length > 0 && <Menu label={`What to do with ${title}`} items={items}><Icon name="more" /></Menu>}
      {dialog === "rename" && <RenameDialog session={session} rename={(text) => sessions.rename(session, text)} close={() => setDialog("")} />}
      {dialog === "share" && <ShareDialog sessionId={session.sessionId} agent={session.agent} title={title} close={() => setDialog("")} />}
    </li>
  );
}
