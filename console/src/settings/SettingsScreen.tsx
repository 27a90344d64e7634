// Settings: what holds for this browser, and what the server tells others for this user.

import { useApp, useSettings } from "../app/context";
import { visible } from "../text/visible";
import { Appearance } from "./Appearance";
import { Notifications } from "./Notifications";
import { Shares } from "./Shares";
import { Webhooks } from "./Webhooks";
import "../sessions/sessions.css";
import "./settings.css";

export default function SettingsScreen() {
  const { me, store, logOut } = useApp();
  useSettings();
  return (
    <div class="settings">
      <Appearance />
      <Notifications />
      {store.mayPrompt && <Webhooks />}
      {store.mayPrompt && <Shares />}
      <section aria-labelledby="login-title">
        <h2 id="login-title">Login</h2>
        <dl class="facts">
          <dt>Token</dt><dd>{visible(me.name)}</dd>
          <dt>Principal</dt><dd>{visible(me.principal ?? me.name)}</dd>
          <dt>Scopes</dt><dd>{me.scopes.join(", ")}</dd>
          <dt>Server</dt><dd>Dragoman {visible(me.version)}</dd>
        </dl>
        <p><button class="button" onClick={logOut}>Log out</button></p>
      </section>
    </div>
  );
}
