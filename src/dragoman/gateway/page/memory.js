// What this tab knows again after a reload: its connection, which questions it has answered in it, and what somebody
// has written and not sent.

const ANSWERED = 200; // the last ones; a question is not open for that long
const NAME = "dragoman";
const DRAFT = "dragoman-draft"; // apart: it outlives the connection

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

/** What was written by whoever has this name; another one does not see it. */
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
