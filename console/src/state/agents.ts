// The agents of a server with several, by their names: which one this tab works with, and how it comes to another.

import { chosenAgent, chooseAgent, keepNext } from "./memory";
import type { Me, SessionStore } from "./store";

/** The name of the agent of this tab; empty where there is one alone. */
export function currentAgent(me: Me): string {
  const names = me.agents ?? [];
  if (names.length < 2) return "";
  return names.includes(chosenAgent()) ? chosenAgent() : names[0]!;
}

/** Begin this tab anew with another agent, at an address such as `#/session/ID`. */
export function goToAgent(store: SessionStore, agent: string, address = "#/"): void {
  store.close();
  chooseAgent(agent);
  keepNext("", {});
  history.replaceState(null, "", location.pathname + (address === "#/" ? "" : address));
  location.reload();
}
