// Makes a link to one session that people without a token of their own can read until a date, and ends those there are.

import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "../components/CopyButton";
import { Dialog } from "../components/overlay/Dialog";
import { fullDate } from "../text/words";
import { getJson, postJson } from "../wire/post";
import { ShareList, type Share } from "./ShareList";

const DAY = 86_400;
const SPANS: [number, string][] = [[DAY, "one day"], [7 * DAY, "a week"], [30 * DAY, "30 days"], [90 * DAY, "90 days"]];
const LABEL = 100; // characters

interface Props {
  sessionId: string;
  agent: string;
  title: string;
  close: () => void;
}

export function ShareDialog({ sessionId, agent, title, close }: Props) {
  const [span, setSpan] = useState(7 * DAY);
  const [label, setLabel] = useState(title.slice(0, LABEL));
  const [made, setMade] = useState<{ token: string; expires: number } | null>(null);
  const [shares, setShares] = useState<Share[]>([]);
  const [trouble, setTrouble] = useState("");
  const tell = (error: Error) => setTrouble(error.message);
  const load = () => getJson<{ shares: Share[] }>("/api/shares").then(
    (found) => setShares(found.shares.filter((share) => share.sessionId === sessionId)), tell);
  useEffect(() => void load(), []);
  const make = (event: Event) => {
    event.preventDefault();
    setTrouble("");
    const wish = { sessionId, agent, label: label.trim(), expires: Math.round(Date.now() / 1000) + span };
    postJson<{ token: string; expires: number }>("/api/shares", wish).then((answer) => (setMade(answer), void load()), tell);
  };
  const link = made && `${location.origin}${location.pathname}#share=${made.token}`;
  return (
    <Dialog title={`Share “${title}”`} onClose={close} class="share">
      <p class="muted">
        Anyone with the link can read this session, also what comes later, until it ends: files that were read, output of
        commands, all of it. They can change nothing and see nothing else.
      </p>
      <form onSubmit={make} class="form">
        <label class="field">
          Ends after
          <select value={String(span)} onChange={(event) => setSpan(Number(event.currentTarget.value))}>
            {SPANS.map(([seconds, text]) => <option key={seconds} value={String(seconds)}>{text}</option>)}
          </select>
        </label>
        <label class="field">
          What it is called (readers see that)
          <input maxLength={LABEL} value={label} onInput={(event) => setLabel(event.currentTarget.value)} />
        </label>
        {trouble && <p role="alert" class="failure">{trouble}</p>}
        {link && (
          <div class="link" role="status">
            <p><strong>Copy the link now: it is shown this once.</strong></p>
            <div class="copied"><input readOnly aria-label="The link" value={link} onFocus={(event) => event.currentTarget.select()} /> <CopyButton text={link} what="the link" /></div>
            <p class="small muted">It ends on {fullDate(made.expires)}.</p>
          </div>
        )}
        <p class="dialog-buttons"><button class={made ? "button" : "button primary"}>{made ? "Make another link" : "Make a link"}</button></p>
      </form>
      {shares.length > 0 && <><h3>Links to this session</h3><ShareList shares={shares} changed={load} /></>}
    </Dialog>
  );
}
