// Who is here: a token is shown once, by the form or in the address, and is a cookie from then on.

import { find } from "./dom.js";
import { post } from "./wire.js";

const TROUBLES = { 401: "The server does not know this token.", 429: "Too many wrong tokens. Wait a minute." };
const SILENCE = "The server does not answer.";

/** `enter(who)` is called with whoever has logged in, now or before. */
export async function login(enter) {
  find("login").addEventListener("submit", (event) => {
    event.preventDefault();
    show(find("token").value.trim(), enter);
  });
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname); // out of the address bar, and out of the history
    return show(token, enter);
  }
  const answer = await post("/me").catch(() => null);
  if (answer?.ok) return enter(await answer.json());
  return askForToken(answer === null ? SILENCE : "");
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
  return enter(await answer.json());
}
