// What this tab knows again after a reload: its connection, and which questions it has answered in it.

const ANSWERED = 200; // the last ones; a question is not open for that long
const NAME = "dragoman";

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
