// POST requests to this server. A cookie alone opens nothing: the page key, which only pages of this origin can read, is
// the other half of a login.

const PAGE_KEY = "dragoman-page-key";
const KEY_FORM = /^[A-Za-z0-9_-]{1,64}$/; // so that it can stand in a header

let shareKey = ""; // of a share link, which counts in its tab alone, until a reload
let unstored = ""; // the page key, where the browser lets us store nothing: it lasts until a reload

/** The page key; empty before a login. It is read each time: another tab may have logged in since. */
export function pageKey(): string {
  if (shareKey) return shareKey;
  let key: string | null = null;
  try {
    key = localStorage.getItem(PAGE_KEY);
  } catch {
    // storage is forbidden here
  }
  key ??= unstored;
  return KEY_FORM.test(key) ? key : "";
}

export function keepPageKey(key: string): void {
  unstored = key;
  try {
    localStorage.setItem(PAGE_KEY, key);
  } catch {
    // storage is full or forbidden
  }
}

/** From now on this tab is the one of a share link, and no other login counts in it. */
export function usePageKeyOfShare(key: string): void {
  shareKey = KEY_FORM.test(key) ? key : "";
}

export function forgetPageKey(): void {
  unstored = "";
  try {
    localStorage.removeItem(PAGE_KEY);
  } catch {
    // there is none
  }
}

/** POST as our own page does it. */
export function post(path: string, headers: Record<string, string> = {}, body?: BodyInit): Promise<Response> {
  const ours: Record<string, string> = { "X-Dragoman": "1" };
  if (pageKey()) ours["X-Dragoman-Page-Key"] = pageKey();
  return fetch(path, { method: "POST", headers: { ...ours, ...headers }, credentials: "same-origin", body: body ?? null });
}

/** GET as our own page does it. */
export function get(path: string): Promise<Response> {
  const ours: Record<string, string> = { "X-Dragoman": "1" };
  if (pageKey()) ours["X-Dragoman-Page-Key"] = pageKey();
  return fetch(path, { headers: ours, credentials: "same-origin", cache: "no-store" });
}

/** GET and return the JSON of the answer; throws an error with a sentence for a person. */
export async function getJson<T>(path: string, query: Record<string, string> = {}): Promise<T> {
  const text = new URLSearchParams(query).toString();
  return valueOf<T>(await get(text ? `${path}?${text}` : path).catch(() => null));
}

/** POST JSON and return the JSON of the answer; throws an error with a sentence for a person. */
export async function postJson<T>(path: string, value: unknown = {}): Promise<T> {
  return valueOf<T>(await post(path, { "Content-Type": "application/json" }, JSON.stringify(value)).catch(() => null));
}

/** The server has answered that this cannot be done, and why. */
export class Refused extends Error {
  constructor(readonly status: number, sentence: string) {
    super(sentence);
  }
}

async function valueOf<T>(answer: Response | null): Promise<T> {
  if (answer === null) throw new Error("The server does not answer. Check your connection and try again.");
  const body: unknown = await answer.json().catch(() => null);
  if (answer.ok) return body as T;
  const reason = (body as { error?: unknown } | null)?.error;
  throw new Refused(answer.status, typeof reason === "string" ? reason : `The server refused this (${answer.status}).`);
}

/** What a WebSocket of ours offers: a page can set no header there, so its key is one of the subprotocols. */
export function subprotocols(): string[] {
  return pageKey() ? ["acp", `dragoman.${pageKey()}`] : ["acp"];
}
