// What every screen gets from the application, without passing it through all components between.

import { createContext } from "preact";
import { useContext, useEffect, useReducer } from "preact/hooks";
import type { Activity } from "../state/activity";
import type { AgentLinks } from "../state/agent_links";
import { onSettings } from "../state/settings";
import type { Me, SessionStore } from "../state/store";

export type { Me };

export interface AppContext {
  me: Me;
  store: SessionStore;
  /** What runs and waits, in all sessions at every agent. */
  activity: Activity;
  /** Connections to the other agents of the server. */
  links: AgentLinks;
  logOut: () => void;
}

export const Context = createContext<AppContext | null>(null);

/** What the application gives its screens; only inside of the application after a login. */
export function useApp(): AppContext {
  const context = useContext(Context);
  if (context === null) throw new Error("useApp is for screens that are shown after the login");
  return context;
}

/** The store; the component is drawn again when something in it has changed, at most once a frame. */
export function useStore(): SessionStore {
  const { store } = useApp();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => store.subscribe(() => redraw(undefined)), [store]);
  return store;
}

/** What runs and waits; the component is drawn again when that has changed. */
export function useActivity(): Activity {
  const { activity } = useApp();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => activity.subscribe(() => redraw(undefined)), [activity]);
  return activity;
}

/** Draw a component again when what was chosen for this browser has changed. */
export function useSettings(): void {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => onSettings(() => redraw(undefined)), []);
}
