// Who is here: a token is shown once, by the form or in the address. From then on the login is a cookie, which goes to
// every port of this host, and a page key, which only pages of this origin can read; the server wants both.
//
// A link may come from an attacker. One with the attacker's token would make the user work under the attacker's name,
// where the attacker can read along; so a user who is logged in is asked first. A link that says to come back from the
// issuer, with a code of the attacker, counts only in a tab that has begun such a login.

import { find, visible } from "./dom.js";
import { forget, keepBinding, keepPageKey, takeBinding } from "./memory.js";
import { post } from "./wire.js";

const TROUBLES = { 401: "The server does not know this token.", 429: "Too many wrong tokens. Wait a minute." };
const CALLBACK = "/login/oidc"; // where the issuer sends the browser back to
const WORDS = 200; // characters of what the issuer says
const SILENCE = "The server does not answer.";

/** Log in, and call `enter(me)` with the user of this login or of an earlier one that is still valid. */
export async function login(enter) {
  find("login").addEventListener("submit", (event) => {
    event.preventDefault();
    show(find("token").value.trim(), enter);
  });
  find("with-issuer").onclick = () => goToIssuer();
  const back = comeBack();
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", location.pathname); // out of the address bar, and out of the history
  const answer = await post("/me").catch(() => null);
  if (answer?.ok) {
    const me = await answer.json();
    return token ? askWhich(me, token, enter) : enter(me);
  }
  if (back) return finish(back, enter);
  return token ? show(token, enter) : askForToken(answer === null ? SILENCE : "");
}

/** What the issuer has sent this browser back with, taken out of the address bar; null where it was not there. */
function comeBack() {
  if (location.pathname !== CALLBACK) return null;
  const said = Object.fromEntries(new URLSearchParams(location.search));
  const [binding, hash] = takeBinding();
  history.replaceState(null, "", `/${hash}`);
  return { ...said, binding };
}

/** Offer to log in with the issuer, if the server believes one. */
async function offerIssuer() {
  const ways = await post("/login/ways").then((answer) => answer.json(), () => ({}));
  find("with-issuer").hidden = typeof ways.issuer !== "string";
  find("with-issuer").textContent = `Log in with ${visible(ways.issuer ?? "")}`;
}

async function goToIssuer() {
  const answer = await post(`${CALLBACK}/start`).catch(() => null);
  if (!answer?.ok) return askForToken(await reason(answer));
  const { url, binding } = await answer.json();
  if (!keepBinding(binding, location.hash)) return askForToken("This browser keeps nothing for this page, so it can log in with a token alone.");
  return location.assign(url);
}

async function finish({ code, state, iss, binding, error, error_description: words }, enter) {
  if (error) return askForToken(`The issuer says: ${visible(words || error).slice(0, WORDS)}`);
  if (!code || !state || !binding) return askForToken("This login was not begun in this tab. Begin it here.");
  const body = JSON.stringify({ code, state, binding, ...(iss && { iss }) });
  return take(await post(`${CALLBACK}/finish`, {}, body).catch(() => null), enter, reason);
}

/** Why the server has not done what was asked, in its words. */
async function reason(answer) {
  if (answer === null) return SILENCE;
  return visible(await answer.json().then((body) => body.error, () => "That did not work."));
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
  offerIssuer();
}

async function show(token, enter) {
  const trouble = (answer) => (answer === null ? SILENCE : TROUBLES[answer.status] ?? "That did not work.");
  return take(await post("/login", { Authorization: `Bearer ${token}` }).catch(() => null), enter, trouble);
}

/** Go in with the login that an answer has, or say what `trouble` says of it. */
async function take(answer, enter, trouble) {
  if (!answer?.ok) return askForToken(await trouble(answer));
  find("login").hidden = true;
  find("token").value = "";
  const { pageKey, ...me } = await answer.json();
  keepPageKey(pageKey);
  return enter(me);
}
