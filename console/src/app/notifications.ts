// Notifications of the browser, while the page is not seen: a session asks something, or is done. Only where the user has
// switched them on, and without what is asked.

import type { Activity, BusySession } from "../state/activity";
import { settings } from "../state/settings";
import type { SessionStore } from "../state/store";
import { visible } from "../text/visible";
import { href, navigate } from "./router";

const TITLE = 100; // characters of a session's title

/** Whether this browser can notify at all, and whether it may. */
export function mayNotify(): NotificationPermission | "impossible" {
  return "Notification" in window ? Notification.permission : "impossible";
}

/** Notify of what is new in the activity, until the returned function is called. */
export function notifyOf(activity: Activity, store: SessionStore): () => void {
  return activity.subscribe((before) => {
    if (!settings().notifies || !document.hidden || mayNotify() !== "granted") return;
    for (const session of activity.sessions) {
      const known = new Set(before.find((one) => one.sessionId === session.sessionId)?.questions.map(({ id }) => id));
      const fresh = session.questions.find(({ id }) => !known.has(id));
      if (fresh) show("A session asks you something", titleIn(store, session), fresh.id, href("inbox"));
    }
    for (const session of before) {
      if (activity.of(session.sessionId)) continue;
      show("A session is done", titleIn(store, session), `done ${session.sessionId}`, href("session", session.sessionId));
    }
  });
}

function titleIn(store: SessionStore, { sessionId }: BusySession): string {
  return visible(store.titleOf(sessionId)).slice(0, TITLE);
}

function show(title: string, body: string, tag: string, address: string): void {
  try {
    // Several tabs tell of one question: the same tag makes them one notification.
    const notification = new Notification(title, { body, tag });
    notification.onclick = () => {
      window.focus();
      navigate(address);
      notification.close();
    };
  } catch {
    // a browser of a phone notifies for installed applications alone
  }
}
