// Makes a token, and shows it once.

import { useState } from "preact/hooks";
import { CopyButton } from "../components/CopyButton";
import { Dialog } from "../components/overlay/Dialog";
import { visible } from "../text/visible";
import { postJson } from "../wire/post";

const SCOPES: [string, string][] = [["read", "watch"], ["prompt", "work"], ["admin", "administer, and work without confinement"]];
const MODES = ["read-only", "plan", "safe", "sandbox", "workspace-write", "ask", "full-access"];
const DAY = 86_400;
const SPANS: [number, string][] = [[0, "never"], [DAY, "after a day"], [30 * DAY, "after 30 days"], [365 * DAY, "after a year"]];

interface Made {
  name: string;
  token: string;
}

export function NewToken({ made, principals }: { made: () => void; principals: readonly string[] }) {
  const [isOpen, setOpen] = useState(false);
  const [token, setToken] = useState<Made | null>(null);
  return (
    <section aria-label="New token">
      <p><button class="button primary" onClick={() => setOpen(true)}>New token</button></p>
      {isOpen && <NewTokenDialog principals={principals} close={() => setOpen(false)} made={(answer) => (setToken(answer), made())} />}
      {token && (
        <div class="link" role="status">
          <p><strong>Copy “{visible(token.name)}” now: it is shown this once.</strong></p>
          <div class="copied"><input readOnly aria-label="The token" value={token.token} onFocus={(event) => event.currentTarget.select()} /> <CopyButton text={token.token} what="the token" /></div>
          <p><button class="button" onClick={() => setToken(null)}>I have it</button></p>
        </div>
      )}
    </section>
  );
}

interface DialogProps {
  principals: readonly string[];
  made: (token: Made) => void;
  close: () => void;
}

function NewTokenDialog({ principals, made, close }: DialogProps) {
  const [name, setName] = useState("");
  const [principal, setPrincipal] = useState("");
  const [scopes, setScopes] = useState<string[]>(["read", "prompt"]);
  const [maxMode, setMaxMode] = useState("");
  const [folders, setFolders] = useState("");
  const [span, setSpan] = useState(0);
  const [trouble, setTrouble] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    const workspaces = folders.split("\n").map((line) => line.trim()).filter(Boolean);
    const expires = span ? Math.round(Date.now() / 1000) + span : 0;
    postJson<Made>("/api/tokens", { name: name.trim(), principal: principal.trim(), scopes, maxMode, workspaces, expires }).then(
      (answer) => (close(), made(answer)),
      (error: Error) => setTrouble(error.message),
    );
  };
  return (
    <Dialog title="New token" onClose={close}>
      <form onSubmit={submit} class="form">
        <label class="field">Name <input autofocus required maxLength={64} value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label class="field">
          Principal: tokens of one share their sessions
          <input list="principals" maxLength={64} placeholder="as the name" value={principal} onInput={(event) => setPrincipal(event.currentTarget.value)} />
        </label>
        <datalist id="principals">{principals.map((one) => <option key={one} value={one} />)}</datalist>
        <fieldset>
          <legend>Scopes</legend>
          {SCOPES.map(([scope, text]) => (
            <label class="check" key={scope}>
              <input type="checkbox" checked={scopes.includes(scope)}
                onChange={(event) => setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))} />
              <span><strong>{scope}</strong>: {text}</span>
            </label>
          ))}
        </fieldset>
        <label class="field">
          Highest mode
          <select value={maxMode} onChange={(event) => setMaxMode(event.currentTarget.value)}>
            <option value="">as the scopes allow</option>
            {MODES.map((mode) => <option key={mode} value={mode}>{mode}</option>)}
          </select>
        </label>
        <label class="field">
          Folders it may work in, one a line
          <textarea rows={2} placeholder="every folder of the server's user" value={folders} onInput={(event) => setFolders(event.currentTarget.value)} />
        </label>
        <label class="field">
          Ends
          <select value={String(span)} onChange={(event) => setSpan(Number(event.currentTarget.value))}>
            {SPANS.map(([seconds, text]) => <option key={seconds} value={String(seconds)}>{text}</option>)}
          </select>
        </label>
        {trouble && <p role="alert" class="failure">{visible(trouble)}</p>}
        <p class="dialog-buttons">
          <button type="button" class="button" onClick={close}>Cancel</button>
          <button class="button primary" disabled={!name.trim() || scopes.length === 0}>Make the token</button>
        </p>
      </form>
    </Dialog>
  );
}
