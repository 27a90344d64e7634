// Who allowed and refused what: the newest decisions, or those of one session.

import { useState } from "preact/hooks";
import { visible } from "../text/visible";
import { fullDate } from "../text/words";
import { getJson } from "../wire/post";
import { usePolled } from "./polled";
import { Table } from "./Table";

interface Decision {
  time: string;
  session: string;
  principal: string | null;
  token: string | null;
  mode: string | null;
  tool: string;
  title: string;
  decision: string;
  option: string | null;
  rule: string | null;
  by: string;
  agent?: string;
}

const SHORT = 13; // characters of a session's id

export function Decisions() {
  const [session, setSession] = useState("");
  const [typed, setTyped] = useState("");
  const ask = () => getJson<{ decisions: Decision[] }>("/api/decisions", session ? { session } : {}).then(({ decisions }) => decisions);
  const { value, trouble, again } = usePolled(ask, 0, session);
  return (
    <section aria-label="Decisions">
      <form class="filters" role="search" onSubmit={(event) => (event.preventDefault(), setSession(typed.trim()), again())}>
        <label class="field search">
          <span class="sr-only">Of one session</span>
          <input type="search" placeholder="The ID of a session; empty: the last ones" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        <button class="button">Show</button>
      </form>
      {trouble && <p role="alert" class="failure">{trouble}</p>}
      {value?.length === 0 && <p class="muted">No decisions are recorded{session ? " of this session" : " yet"}.</p>}
      {value !== null && value.length > 0 && (
        <Table label="Decisions" head={["When", "Session", "Who", "What", "Decision", "By"]} rows={value.map((one) => row(one, setSession, setTyped))} />
      )}
      <p class="small muted">Commands and paths are in it only where the server was started with <code>--audit-content</code>. <code>dragoman sessions audit ID</code> has all of a session.</p>
    </section>
  );
}

function row(one: Decision, setSession: (id: string) => void, setTyped: (id: string) => void) {
  const show = () => (setSession(one.session), setTyped(one.session));
  const who = [one.principal ?? "at the machine", one.token && one.token !== one.principal ? one.token : ""].filter(Boolean).map(visible).join(", ");
  return [
    fullDate(Date.parse(one.time) / 1000),
    <button class="button quiet" title={visible(one.session)} onClick={show}>{visible(one.session.slice(0, SHORT))}…</button>,
    who,
    `${visible(one.tool)}: ${visible(one.title)}`,
    <span class={one.decision === "allow" ? "allowed" : "denied"}>{one.decision === "allow" ? "allowed" : "denied"}{one.option ? ` (${visible(one.option).replace("_", " ")})` : ""}</span>,
    [one.by, one.mode, one.rule].filter(Boolean).map((word) => visible(word)).join(" · "),
  ];
}
