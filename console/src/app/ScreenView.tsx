// One of the other screens, fetched when it is first looked at.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "./context";
import { href, type Route } from "./router";
import type { Screen, ScreenProps } from "./screens";

type Loaded = { is: "loading" } | { is: "failed" } | { is: "there"; View: ComponentType<ScreenProps> };

export function ScreenView({ screen, route }: { screen: Screen; route: Route }) {
  const { me } = useApp();
  const [loaded, setLoaded] = useState<Loaded>({ is: "loading" });
  useEffect(() => {
    let isCurrent = true;
    setLoaded({ is: "loading" });
    screen.load().then(
      (module) => isCurrent && setLoaded({ is: "there", View: module.default }),
      () => isCurrent && setLoaded({ is: "failed" }),
    );
    return () => {
      isCurrent = false;
    };
  }, [screen]);
  const isAllowed = screen.scope === undefined || me.scopes.includes(screen.scope);
  return (
    <main class="app-screen" aria-label={screen.title}>
      {!isAllowed ? (
        <p>
          This screen needs a login with the scope <code>{screen.scope}</code>. <a href={href("")}>Back to the sessions</a>
        </p>
      ) : loaded.is === "there" ? (
        <loaded.View route={route} />
      ) : loaded.is === "failed" ? (
        <p role="alert">
          This screen could not be fetched: the server may have been updated.{" "}
          <button class="button" onClick={() => location.reload()}>Load the page again</button>
        </p>
      ) : (
        <p class="muted" role="status">Loading…</p>
      )}
    </main>
  );
}
