// Which screen is shown: the part of the address behind `#`, so that what is looked at stays in this browser.
//
// `#/` is a new session, `#/session/ID` a conversation; the other screens are in `screens.ts`. Links of earlier versions
// (`#session=ID`) lead to the same conversation.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** The first part of the path: the name of a screen; empty for a new session. */
  screen: string;
  /** The other parts, decoded. */
  parts: string[];
  /** What stands behind a `?`. */
  query: URLSearchParams;
}

/** Parse the part of an address behind `#`. */
export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#/, "");
  if (!text.startsWith("/")) {
    const session = new URLSearchParams(text).get("session");
    return { screen: session ? "session" : "", parts: session ? [session] : [], query: new URLSearchParams() };
  }
  const [path = "", query = ""] = text.slice(1).split("?", 2);
  const [screen = "", ...parts] = path.split("/").map(decoded);
  return { screen, parts, query: new URLSearchParams(query) };
}

/** The address of a screen, for `href`. */
export function href(screen: string, ...parts: string[]): string {
  return `#/${[screen, ...parts].filter(Boolean).map(encodeURIComponent).join("/")}`;
}

/** Go to a screen. `replace`: without an entry in the history. */
export function navigate(address: string, { replace = false } = {}): void {
  if (address === location.hash || (address === "#/" && !location.hash)) return;
  const where = address === "#/" ? location.pathname : address;
  if (replace) history.replaceState(null, "", where);
  else history.pushState(null, "", where);
  dispatchEvent(new Event("console:route"));
}

/** The route that is shown now; the component is drawn again when it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parseRoute(location.hash));
    const events = ["hashchange", "popstate", "console:route"];
    for (const event of events) addEventListener(event, changed);
    changed();
    return () => events.forEach((event) => removeEventListener(event, changed));
  }, []);
  return route;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
