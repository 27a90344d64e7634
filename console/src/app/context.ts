// What every screen gets from the application, without passing it through all components between.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Wire } from "../wire/wire";

/** Who is logged in, as the server says it. */
export interface Me {
  name: string;
  scopes: string[];
  /** The folder that a new session is offered. */
  folder: string;
  version: string;
  /** The names of the agents, where there are several. */
  agents?: string[];
}

export interface AppContext {
  me: Me;
  wire: Wire;
}

export const Context = createContext<AppContext | null>(null);

/** What the application gives its screens; only inside of the application after a login. */
export function useApp(): AppContext {
  const context = useContext(Context);
  if (context === null) throw new Error("useApp is for screens that are shown after the login");
  return context;
}
