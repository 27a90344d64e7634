// The application: the login, then the screens in their frame.

import { useEffect, useMemo, useState } from "preact/hooks";
import { chosenAgent, draft, forget, forgetNewOptions, keepDraft, keepNext, recall } from "../state/memory";
import { Activity } from "../state/activity";
import { AgentLinks } from "../state/agent_links";
import { SessionStore, type Me } from "../state/store";
import { forgetPageKey, post } from "../wire/post";
import { Context, type AppContext } from "./context";
import { Frame } from "./Frame";
import { notifyOf } from "./notifications";
import { SharedFrame } from "./SharedFrame";
import { findLogin, shareToken, type Login } from "./login";
import { LoginForm, TwoNames } from "./LoginForm";
import { href, navigate, parseRoute } from "./router";

const SETTLED = 300; // milliseconds
const ENDED = "Your login has ended. Log in again; what you have written is kept.";

export function App() {
  const [login, setLogin] = useState<Login>({ is: "looking" });
  useEffect(() => {
    void findLogin().then((found) => {
      const unexplained = found.is === "out" && !found.trouble;
      setLogin(unexplained && recall() ? { is: "out", trouble: ENDED } : found); // this tab was logged in
    });
  }, []);
  useEffect(reloadForTokens, []);
  return (
    <>
      <section id="login" class="gate" hidden={login.is !== "out"}>
        {login.is === "out" && <LoginForm trouble={login.trouble} enter={setLogin} />}
      </section>
      <section id="another" class="gate" role="alertdialog" aria-labelledby="another-title" aria-describedby="another-names"
        hidden={login.is !== "two"}>
        {login.is === "two" && <TwoNames login={login} decide={setLogin} />}
      </section>
      <div id="app" hidden={login.is !== "in"}>
        {login.is === "in" && <Inside key={login.me.name} me={login.me} ended={() => setLogin({ is: "out", trouble: ENDED })} />}
      </div>
    </>
  );
}

/** A link with a token that is followed in a page that is here already: the page begins anew with it. */
function reloadForTokens() {
  const changed = (event: HashChangeEvent) => {
    // As it was when it changed: the page itself may have written another one since.
    const { hash } = new URL(event.newURL);
    const named = new URLSearchParams(hash.slice(1));
    if (!named.get("token") && !named.get("share")) return;
    history.replaceState(null, "", location.pathname + hash);
    location.reload();
  };
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

function Inside({ me, ended }: { me: Me; ended: () => void }) {
  const context = useMemo<AppContext>(() => {
    const store = new SessionStore(me, agentPath(me), {
      loggedOut: ended,
      shown: (id) => followAddress(id),
    });
    return { me, store, activity: new Activity(), links: new AgentLinks(), logOut: () => void logOut(store) };
  }, [me]);
  const { store, activity, links } = context;
  useEffect(() => {
    const { screen, parts } = parseRoute(location.hash);
    store.start(screen === "session" ? parts[0] ?? null : null);
    if (!me.share) activity.start();
    return () => {
      activity.close();
      links.close();
      store.close();
    };
  }, [store]);
  useEffect(() => notifyOf(activity, store), [activity]);
  useEffect(() => lookAfterQuestions(store, activity), [activity]);
  return (
    <Context.Provider value={context}>
      {me.share ? <SharedFrame /> : <Frame initialDraft={draft(me.name)} />}
    </Context.Provider>
  );
}

/** When a question has come or gone in this tab, what waits elsewhere has changed too. */
function lookAfterQuestions(store: SessionStore, activity: Activity): () => void {
  let known = store.questions.size;
  return store.subscribe(() => {
    if (store.questions.size === known) return;
    known = store.questions.size;
    setTimeout(() => void activity.look(), SETTLED); // the server has the answer by then
  });
}

/** The address names the session that is shown, unless another screen is looked at. */
function followAddress(id: string | null) {
  const { screen } = parseRoute(location.hash);
  if ((screen !== "" && screen !== "session") || shareToken()) return;
  navigate(id === null ? "#/" : href("session", id), { replace: true });
}

/** The address of the agent of this tab, on a server with several. */
function agentPath(me: Me): string {
  if (me.share) return me.share.agent ? `/acp/${encodeURIComponent(me.share.agent)}` : "/acp";
  const names = me.agents ?? [];
  if (names.length < 2) return "/acp";
  const name = names.includes(chosenAgent()) ? chosenAgent() : names[0]!;
  return `/acp/${encodeURIComponent(name)}`;
}

async function logOut(store: SessionStore): Promise<void> {
  store.close();
  forget();
  keepDraft("", "");
  keepNext("", {});
  await post("/logout").catch(() => null);
  forgetPageKey();
  forgetNewOptions();
  location.assign("/");
}
