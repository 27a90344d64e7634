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
  /** A scope without which the screen is neither offered nor shown. */
  scope?: "read" | "prompt" | "admin";
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
}

export const SCREENS: readonly Screen[] = [];
