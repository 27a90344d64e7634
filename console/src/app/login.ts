// Who is here: a token is shown once, by the form or in the address. From then on the login is a cookie, which goes to
// every port of this host, and a page key, which only pages of this origin can read; the server wants both.
//
// A link may come from an attacker. One with the attacker's token would make the user work under the attacker's name,
// where the attacker can read along; so a user who is logged in is asked first. A link that says to come back from the
// issuer, with a code of the attacker, counts only in a tab that has begun such a login.

import { forget, keepBinding, takeBinding } from "../state/memory";
import type { Me } from "../state/store";
import { visible } from "../text/visible";
import { keepPageKey, post, usePageKeyOfShare } from "../wire/post";

const TROUBLES: Record<number, string> = {
  401: "The server does not know this token. Check that it is whole, or ask for a new one.",
  429: "Too many wrong tokens. Wait a minute, then try again.",
};
const CALLBACK = "/login/oidc"; // where the issuer sends the browser back to
const WORDS = 200; // characters of what the issuer says
const SILENCE = "The server does not answer. Check that it runs, then try again.";
const SHARE_OVER = "This link is over, or was never whole. Ask its sender for a new one.";
const FAILED = "That did not work. Try again.";

/** Where a login stands: what the screen shows. */
export type Login =
  | { is: "looking" }
  | { is: "out"; trouble: string }
  | { is: "two"; me: Me; other: string; token: string }
  | { is: "in"; me: Me };

/** Find out who is here: by the address, by what an earlier login has left, or by coming back from the issuer. */
export async function findLogin(): Promise<Login> {
  const shared = shareToken();
  if (shared) return openShare(shared);
  const back = comeBack();
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", location.pathname); // out of the address bar, and out of the history
  const answer = await post("/me").catch(() => null);
  if (answer?.ok) {
    const me = (await answer.json()) as Me;
    return token ? compare(me, token) : { is: "in", me };
  }
  if (back) return finish(back);
  return token ? logIn(token) : { is: "out", trouble: answer === null ? SILENCE : "" };
}

/** The token of the share link that this tab shows, or "". It stays in the address, which is the link. */
export function shareToken(): string {
  return new URLSearchParams(location.hash.slice(1)).get("share") ?? "";
}

/** Show a share link, beside whatever login this browser has: its own counts in this tab alone. */
async function openShare(token: string): Promise<Login> {
  forget(); // what this tab had was another one's
  const answer = await post("/login", { Authorization: `Bearer ${token}` }).catch(() => null);
  if (!answer?.ok) {
    const trouble = answer === null ? SILENCE : [401, 404].includes(answer.status) ? SHARE_OVER : await reason(answer);
    return { is: "out", trouble };
  }
  const { pageKey, ...me } = await answer.json();
  if (!me.share) return { is: "out", trouble: SHARE_OVER }; // a token that is none of a link must not log in here
  usePageKeyOfShare(pageKey);
  return { is: "in", me: { ...me, folder: "/", version: "" } };
}

/** Log in with a token. */
export async function logIn(token: string): Promise<Login> {
  const trouble = (answer: Response) => Promise.resolve(TROUBLES[answer.status] ?? FAILED);
  return enter(await post("/login", { Authorization: `Bearer ${token}` }).catch(() => null), trouble);
}

/** The name of the issuer that the server believes, or "". */
export async function issuerName(): Promise<string> {
  const ways = await post("/login/ways").then((answer) => answer.json(), () => ({}));
  return typeof ways.issuer === "string" ? visible(ways.issuer) : "";
}

/** Go to the issuer; where that cannot be, the sentence that says why is returned. */
export async function goToIssuer(): Promise<string> {
  const answer = await post(`${CALLBACK}/start`).catch(() => null);
  if (!answer?.ok) return reason(answer);
  const { url, binding } = await answer.json();
  if (!keepBinding(binding, location.hash)) {
    return "This browser keeps nothing for this page, so it can log in with a token alone.";
  }
  location.assign(url);
  return "";
}

interface Back {
  code?: string;
  state?: string;
  iss?: string;
  error?: string;
  error_description?: string;
  binding: string;
}

/** What the issuer has sent this browser back with, taken out of the address bar; null where it was not there. */
function comeBack(): Back | null {
  if (location.pathname !== CALLBACK) return null;
  const said = Object.fromEntries(new URLSearchParams(location.search));
  const [binding, hash] = takeBinding();
  history.replaceState(null, "", `/${hash}`);
  return { ...said, binding };
}

async function finish({ code, state, iss, binding, error, error_description: words }: Back): Promise<Login> {
  if (error) return { is: "out", trouble: `The issuer says: ${visible(words || error).slice(0, WORDS)}` };
  if (!code || !state || !binding) return { is: "out", trouble: "This login was not begun in this tab. Begin it here." };
  const body = JSON.stringify({ code, state, binding, ...(iss && { iss }) });
  return enter(await post(`${CALLBACK}/finish`, {}, body).catch(() => null), reason);
}

/** Ask a logged-in user who followed a link with a token of another name whether to switch to that name. */
async function compare(me: Me, token: string): Promise<Login> {
  const answer = await post("/me", { Authorization: `Bearer ${token}` }).catch(() => null);
  const other = answer?.ok ? ((await answer.json()) as Me) : null;
  return other === null || other.name === me.name ? { is: "in", me } : { is: "two", me, other: other.name, token };
}

/** Why the server has not done what was asked, in its words. */
async function reason(answer: Response | null): Promise<string> {
  if (answer === null) return SILENCE;
  return visible(await answer.json().then((body) => body.error ?? FAILED, () => FAILED));
}

/** Go in with the login that an answer has, or say what `trouble` says of it. */
async function enter(answer: Response | null, trouble: (answer: Response) => Promise<string>): Promise<Login> {
  if (!answer?.ok) return { is: "out", trouble: answer === null ? SILENCE : await trouble(answer) };
  const { pageKey, ...me } = await answer.json();
  keepPageKey(pageKey);
  return { is: "in", me };
}
