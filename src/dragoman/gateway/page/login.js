// Who is here: a token is shown once, by the form or in the address. From then on the login is a cookie, which goes to
// every port of this host, and a page key, which only pages of this origin can read; the server wants both.
//
// A link may come from an attacker. One with the attacker's token would make the user work under the attacker's name,
// where the attacker can read along; so a user who is logged in is asked first.

import { find, visible } from "./dom.js";
import { forget, keepPageKey } from "./memory.js";
import { post } from "./wire.js";

const TROUBLES = { 401: "The server does not know this token.", 429: "Too many wrong tokens. Wait a minute." };
const SILENCE = "The server does not answer.";

/** Log in, and call `enter(me)` with the user of this login or of an earlier one that is still valid. */
export async function login(enter) {
  find("login").addEventListener("submit", (event) => {
    event.preventDefault();
    show(find("token").value.trim(), enter);
  });
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", location.pathname); // out of the address bar, and out of the history
  const answer = await post("/me").catch(() => null);
  if (answer?.ok) {
    const me = await answer.json();
    return token ? askWhich(me, token, enter) : enter(me);
  }
  return token ? show(token, enter) : askForToken(answer === null ? SILENCE : "");
}

/** Ask a logged-in user who followed a link with a token of another name whether to switch to that name. */
async function askWhich(me, token, enter) {
  const answer = await post("/me", { Authorization: `Bearer ${token}` }).catch(() => null);
  const other = answer?.ok ? await answer.json() : null;
  if (other === null || other.name === me.name) return enter(me);
  find("another-names").textContent = `You are logged in as ${visible(me.name)}. This link logs you in as ${visible(other.name)}.`;
  const decide = (choice) => () => {
    find("another").hidden = true;
    return choice();
  };
  find("stay").onclick = decide(() => enter(me));
  find("switch").onclick = decide(() => {
    forget(); // what this tab had was another one's
    return show(token, enter);
  });
  find("another").hidden = false;
  return find("stay").focus();
}

export function askForToken(trouble) {
  find("login").hidden = false;
  find("login-trouble").textContent = trouble;
  find("token").focus();
}

async function show(token, enter) {
  const answer = await post("/login", { Authorization: `Bearer ${token}` }).catch(() => null);
  if (!answer?.ok) return askForToken(answer === null ? SILENCE : TROUBLES[answer.status] ?? "That did not work.");
  find("login").hidden = true;
  find("token").value = "";
  const { pageKey, ...me } = await answer.json();
  keepPageKey(pageKey);
  return enter(me);
}
