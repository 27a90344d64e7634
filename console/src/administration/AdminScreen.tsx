// Administration: how the server does, who may use it, who allowed what. Each part has an address of its own.

import type { ComponentType } from "preact";
import { useApp, useSettings } from "../app/context";
import { href } from "../app/router";
import type { ScreenProps } from "../app/screens";
import { Decisions } from "./Decisions";
import { Metrics } from "./Metrics";
import { Server } from "./Server";
import { Tokens } from "./Tokens";
import "../sessions/sessions.css";
import "../settings/settings.css";
import "./admin.css";

interface Part {
  name: string;
  title: string;
  view: ComponentType;
  /** Only for administrators whose token has no limits of its own. */
  isForOwners?: boolean;
}

const PARTS: readonly Part[] = [
  { name: "", title: "Server", view: Server },
  { name: "metrics", title: "Live", view: Metrics },
  { name: "tokens", title: "Tokens", view: Tokens, isForOwners: true },
  { name: "decisions", title: "Decisions", view: Decisions, isForOwners: true },
];

export default function AdminScreen({ route }: ScreenProps) {
  const { me } = useApp();
  useSettings();
  const part = PARTS.find(({ name }) => name === (route.parts[0] ?? "")) ?? PARTS[0]!;
  return (
    <div class="admin">
      <nav class="tabs" aria-label="Administration">
        {PARTS.map(({ name, title }) => (
          <a key={name} href={href("admin", name)} aria-current={name === part.name ? "page" : undefined}>{title}</a>
        ))}
      </nav>
      {part.isForOwners && !me.administers ? (
        <p>Your token has limits of its own, so it may not see this: it could make a token that reaches further. Use one without.</p>
      ) : <part.view />}
    </div>
  );
}
