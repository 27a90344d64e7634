// What this tab knows again after a reload: its connection, which questions it has answered in it, and the draft of a
// prompt that is not sent. And what all tabs of this origin share: the page key, the half of a login that is no cookie.

const ANSWERED = 200; // the last ones; a question is not open for that long
const REQUESTS = 50; // the last ones that wait for an answer
const NAME = "dragoman";
const DRAFT = "dragoman-draft"; // apart: it outlives the connection
const NEXT = "dragoman-next"; // what was chosen for a session that is not made yet
const OPTIONS = "dragoman-options"; // what a new session offers
const AGENT = "dragoman-agent";
const BINDING = "dragoman-login";
const PAGE_KEY = "dragoman-page-key";
const KEY_FORM = /^[A-Za-z0-9_-]{1,64}$/; // so that it can stand in a header

let unstored = ""; // the page key, where the browser lets us store nothing: it lasts until a reload

/** The agent that this tab talks to, of a server with several; empty: the first. */
export function chosenAgent() {
  try {
    return sessionStorage.getItem(AGENT) ?? "";
  } catch {
    return "";
  }
}

/** Choose another agent: the connection and the sessions of this tab were those of the one before. */
export function chooseAgent(name) {
  forget();
  forgetNewOptions();
  try {
    sessionStorage.setItem(AGENT, name);
  } catch {
    // there is no room: it stays the first
  }
}

export function recall() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME));
  } catch {
    return null;
  }
}

export function remember(more) {
  try {
    sessionStorage.setItem(NAME, JSON.stringify({ ...recall(), ...more }));
  } catch {
    forget(); // there is no room: a reload has the story told by the agent
  }
}

export function forget() {
  sessionStorage.removeItem(NAME);
}

/** Questions that were answered: each with the number of the message that did so. */
export const answered = () => recall()?.answered ?? [];

export function rememberAnswer(id, number) {
  remember({ answered: [...answered(), [id, number]].slice(-ANSWERED) });
}

const requests = () => recall()?.requests ?? [];

/** Remember a request about a session whose answer has the session's options: it may come after a reload. */
export function rememberRequest(id, sessionId) {
  remember({ requests: [...requests(), [id, sessionId]].slice(-REQUESTS) });
}

/** Forget a request that is answered; returns its session, or undefined where the request is unknown. */
export function forgetRequest(id) {
  const known = requests();
  const request = known.find(([one]) => one === id);
  if (request) remember({ requests: known.filter((one) => one !== request) });
  return request?.[1];
}

/** Return the draft that the user of this name has written; empty where the draft is of another user. */
export function draft(name) {
  try {
    const [whose, text] = JSON.parse(sessionStorage.getItem(DRAFT));
    return whose === name ? text : "";
  } catch {
    return "";
  }
}

export function keepDraft(name, text) {
  try {
    if (text) sessionStorage.setItem(DRAFT, JSON.stringify([name, text]));
    else sessionStorage.removeItem(DRAFT);
  } catch {
    // too long to be kept; it still stands where it was written
  }
}

/** What the user of this name chose for the next session; `open`: it is the one that is shown. */
export function next(name) {
  try {
    const [owner, choice] = JSON.parse(sessionStorage.getItem(NEXT));
    return owner === name ? choice : {};
  } catch {
    return {};
  }
}

export function keepNext(name, choice) {
  try {
    sessionStorage.setItem(NEXT, JSON.stringify([name, choice]));
  } catch {
    // there is no room: it is chosen again
  }
}

/** Keep what a login with the issuer is bound to this tab by, and what the page showed; false where nothing can be. */
export function keepBinding(binding, hash) {
  try {
    sessionStorage.setItem(BINDING, JSON.stringify([binding, hash]));
    return true;
  } catch {
    return false;
  }
}

/** What was kept, which counts once: the binding, or "", and what the page showed. */
export function takeBinding() {
  try {
    const [binding, hash] = JSON.parse(sessionStorage.getItem(BINDING));
    sessionStorage.removeItem(BINDING);
    return [String(binding), String(hash)];
  } catch {
    return ["", ""];
  }
}

/** The options of a new session, as the last one that was made here had them. */
export function newOptions(name) {
  try {
    const [whose, options] = JSON.parse(localStorage.getItem(OPTIONS));
    return whose === name && Array.isArray(options) ? options : [];
  } catch {
    return [];
  }
}

export function rememberNewOptions(name, options) {
  try {
    localStorage.setItem(OPTIONS, JSON.stringify([name, options]));
  } catch {
    // they are known again when a session is made
  }
}

export function forgetNewOptions() {
  try {
    localStorage.removeItem(OPTIONS);
  } catch {
    // there are none
  }
}

/** The page key; empty before a login. It is read each time: another tab may have logged in since. */
export function pageKey() {
  let key;
  try {
    key = localStorage.getItem(PAGE_KEY);
  } catch {
    // storage is forbidden here
  }
  key ??= unstored;
  return KEY_FORM.test(key) ? key : "";
}

export function keepPageKey(key) {
  unstored = key;
  try {
    localStorage.setItem(PAGE_KEY, key);
  } catch {
    // storage is full or forbidden
  }
}

export function forgetPageKey() {
  unstored = "";
  try {
    localStorage.removeItem(PAGE_KEY);
  } catch {
    // there is none
  }
}
