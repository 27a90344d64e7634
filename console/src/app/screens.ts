// The screens beside the conversation. Each is fetched when it is first shown.

import type { ComponentType } from "preact";
import type { IconName } from "./Icon";
import type { Route } from "./router";

export interface ScreenProps {
  route: Route;
}

export interface Screen {
  /** The first part of the address, and the link in the navigation. */
  name: string;
  title: string;
  icon?: IconName;
  /** It is gone to from another screen, and not from the navigation. */
  isHidden?: boolean;
  /** A scope without which the screen is neither offered nor shown. */
  scope?: "read" | "prompt" | "admin";
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
}

export const SCREENS: readonly Screen[] = [
  { name: "inbox", title: "Inbox", icon: "inbox", load: () => import("../inbox/InboxScreen") },
  { name: "sessions", title: "All sessions", icon: "list", load: () => import("../sessions/SessionsScreen") },
  { name: "beside", title: "Side by side", isHidden: true, load: () => import("../sessions/BesideScreen") },
  { name: "settings", title: "Settings", icon: "gear", load: () => import("../settings/SettingsScreen") },
  { name: "admin", title: "Administration", icon: "shield", scope: "admin", load: () => import("../administration/AdminScreen") },
];
