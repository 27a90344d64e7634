// Webhooks: a server of the user's own is told when a session asks something, and when a turn has ended.

import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "../components/CopyButton";
import { visible } from "../text/visible";
import { fullDate } from "../text/words";
import { getJson, postJson, Refused } from "../wire/post";

const EVENTS: [string, string][] = [["question.opened", "a question waits"], ["turn.ended", "a turn has ended"]];

const REFUSALS: Record<number, string> = {
  403: "Your token is held to folders, so it has no webhooks: they tell of all sessions of a principal. Use one without folders.",
  404: "This server has no webhooks.",
};

interface Webhook {
  id: string;
  url: string;
  events: string[];
  content: boolean;
  last: { time: number; status: number; problem: string } | null;
}

export function Webhooks() {
  const [webhooks, setWebhooks] = useState<Webhook[]>([]);
  const [made, setMade] = useState<{ url: string; secret: string } | null>(null);
  const [trouble, setTrouble] = useState("");
  const tell = (error: Error) => setTrouble(error.message);
  const [refusal, setRefusal] = useState("");
  const load = () => getJson<{ webhooks: Webhook[] }>("/api/webhooks").then(
    (found) => setWebhooks(found.webhooks),
    (error: Error) => (error instanceof Refused && REFUSALS[error.status] ? setRefusal(REFUSALS[error.status]!) : tell(error)),
  );
  useEffect(() => void load(), []);
  const act = (path: string, wish: object) => {
    setTrouble("");
    return postJson<any>(`/api/webhooks${path}`, wish).then((answer) => (void load(), answer), tell);
  };
  return (
    <section aria-labelledby="webhooks-title">
      <h2 id="webhooks-title">Webhooks</h2>
      <p class="small muted">{refusal || "A server of yours is told what happens in your sessions, by a signed message (Standard Webhooks)."}</p>
      <ul class="plain-list">
        {webhooks.map((webhook) => (
          <li key={webhook.id}>
            <span>
              <strong>{visible(webhook.url)}</strong>
              <br />
              <span class="small muted">{webhook.events.map((kind) => EVENTS.find(([one]) => one === kind)?.[1] ?? kind).join(", ")}{webhook.content && ", with titles"} · {outcome(webhook)}</span>
            </span>
            <span class="buttons">
              <button class="button" onClick={() => void act("/try", { id: webhook.id })}>Try</button>
              <button class="button danger" aria-label={`Remove ${visible(webhook.url)}`} onClick={() => void act("/remove", { id: webhook.id })}>Remove</button>
            </span>
          </li>
        ))}
      </ul>
      {trouble && <p role="alert" class="failure">{visible(trouble)}</p>}
      {made && (
        <div class="link" role="status">
          <p><strong>Copy the secret now: it is shown this once.</strong> The messages to {visible(made.url)} are signed with it.</p>
          <div class="copied"><input readOnly aria-label="The secret" value={made.secret} onFocus={(event) => event.currentTarget.select()} /> <CopyButton text={made.secret} what="the secret" /></div>
        </div>
      )}
      {!refusal && <NewWebhook add={(wish) => act("", wish).then((answer) => answer && setMade(answer))} />}
    </section>
  );
}

function NewWebhook({ add }: { add: (wish: object) => Promise<unknown> }) {
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<string[]>(EVENTS.map(([kind]) => kind));
  const [content, setContent] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    void add({ url: url.trim(), events, content }).then(() => setUrl(""));
  };
  return (
    <form onSubmit={submit} class="form new">
      <label class="field">
        Address
        <input type="url" required placeholder="https://hooks.example.com/dragoman" value={url} onInput={(event) => setUrl(event.currentTarget.value)} />
      </label>
      <fieldset>
        <legend>When</legend>
        {EVENTS.map(([kind, text]) => (
          <label class="check" key={kind}>
            <input type="checkbox" checked={events.includes(kind)}
              onChange={(event) => setEvents(event.currentTarget.checked ? [...events, kind] : events.filter((one) => one !== kind))} /> {text}
          </label>
        ))}
      </fieldset>
      <label class="check">
        <input type="checkbox" checked={content} onChange={(event) => setContent(event.currentTarget.checked)} /> with the title of the question
      </label>
      <p><button class="button" disabled={!url.trim() || events.length === 0}>Add a webhook</button></p>
    </form>
  );
}

function outcome({ last }: Webhook): string {
  if (!last) return "nothing was sent since the server began";
  const what = last.problem || (last.status < 300 ? `answered ${last.status}` : `refused with ${last.status}`);
  return `last ${fullDate(last.time)}: ${visible(what)}`;
}
