// The form for a token, and the question whether to become another user.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { forget } from "../state/memory";
import { visible } from "../text/visible";
import { Mark } from "./Icon";
import { goToIssuer, issuerName, logIn, type Login } from "./login";

export function LoginForm({ trouble, enter }: { trouble: string; enter: (login: Login) => void }) {
  const token = useRef<HTMLInputElement>(null);
  const [issuer, setIssuer] = useState("");
  const [said, setSaid] = useState(trouble);
  const [busy, setBusy] = useState(false);
  useEffect(() => setSaid(trouble), [trouble]);
  useLayoutEffect(() => token.current?.focus(), []);
  useEffect(() => void issuerName().then(setIssuer), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const login = await logIn(token.current!.value.trim());
    setBusy(false);
    if (login.is === "out") setSaid(login.trouble);
    token.current?.focus();
    enter(login);
  };
  return (
    <form onSubmit={submit}>
      <Mark size={44} />
      <h1>Dragoman</h1>
      <p class="muted">Coding agents in your browser.</p>
      {issuer && (
        <button type="button" class="button primary" id="with-issuer" onClick={async () => setSaid(await goToIssuer())}>
          Log in with {issuer}
        </button>
      )}
      <label for="token">Token</label>
      <input id="token" ref={token} type="password" autocomplete="current-password" spellcheck={false} required />
      <button class={issuer ? "button" : "button primary"} disabled={busy}>Log in</button>
      <p id="login-trouble" role="alert">{said}</p>
      <p class="muted small">
        The first start of <code>dragoman serve</code> shows a token. Make another one with{" "}
        <code>dragoman tokens create NAME</code>.
      </p>
    </form>
  );
}

export function TwoNames({ login, decide }: { login: Login & { is: "two" }; decide: (login: Login) => void }) {
  const stay = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => stay.current?.focus(), []);
  const change = async () => {
    forget(); // what this tab had was another one's
    decide(await logIn(login.token));
  };
  return (
    <div>
      <Mark size={44} />
      <h1 id="another-title">Who are you here?</h1>
      <p id="another-names">
        You are logged in as {visible(login.me.name)}. This link logs you in as {visible(login.other)}.
      </p>
      <p class="muted small">
        The person who made this link can read what you do while you are logged in with it. Log in only if the link is
        your own.
      </p>
      <button class="button primary" id="stay" ref={stay} onClick={() => decide({ is: "in", me: login.me })}>
        Stay who I am
      </button>
      <button class="button" id="switch" onClick={change}>Log in as the other</button>
    </div>
  );
}
