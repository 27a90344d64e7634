// What stands around every screen: the header, and the side with the navigation and the sessions.

import { useEffect, useRef, useState } from "preact/hooks";
import { Conversation } from "../conversation/Conversation";
import { SessionMenu } from "../conversation/SessionMenu";
import { harmless } from "../text/visible";
import { useApp, useStore } from "./context";
import { Icon } from "./Icon";
import { LinkState } from "./LinkState";
import { useRoute, type Route } from "./router";
import { ScreenView } from "./ScreenView";
import { SCREENS } from "./screens";
import { Side } from "./Side";

export function Frame({ initialDraft }: { initialDraft: string }) {
  const store = useStore();
  const route = useRoute();
  const [menu, setMenu] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useRouteOfSession(route);
  useEffect(() => setMenu(false), [route]);
  const screen = SCREENS.find((one) => one.name === route.screen);
  const title = screen ? screen.title : harmless(store.current?.state.title || "New session");
  useEffect(() => {
    const waits = store.questions.size ? "? " : store.current?.state.isRunning ? "● " : "";
    document.title = screen || store.current ? `${waits}${title} – Dragoman` : "Dragoman";
  });
  const close = () => {
    setMenu(false);
    focusPrompt();
  };
  return (
    <div class={menu ? "frame opened" : "frame"} onKeyDown={(event) => menu && event.key === "Escape" && (event.stopPropagation(), close())}>
      <header>
        <button id="menu" class="button quiet icon" ref={button} aria-controls="sessions" aria-expanded={menu} aria-label="Menu"
          onClick={() => (menu ? close() : setMenu(true))}>
          <Icon name={menu ? "close" : "menu"} />
        </button>
        <h1 id="title" class="ellipsis">{title}</h1>
        <LinkState />
        <div id="tools">{!screen && <SessionMenu />}</div>
      </header>
      <Side isOpen={menu} close={close} />
      {menu && <div class="veil" onClick={close} />}
      <main id="column" hidden={Boolean(screen)}>
        <Conversation initialDraft={initialDraft} />
      </main>
      {screen && <ScreenView screen={screen} route={route} />}
    </div>
  );
}

/** What is typed next is meant for the prompt. A finger gets no keyboard that it did not ask for. */
export function focusPrompt() {
  if (matchMedia("(pointer: coarse)").matches) return;
  const question = document.getElementById("question");
  if (!question || question.hidden) document.getElementById("prompt")?.focus();
}

/** Open what the address says, when it changes. */
function useRouteOfSession(route: Route) {
  const { store } = useApp();
  const isFirst = useRef(true);
  useEffect(() => {
    // The first address was given to the store when it started.
    if (isFirst.current) isFirst.current = false;
    else if (route.screen === "session" && route.parts[0]) {
      store.setTrouble("");
      void store.openById(route.parts[0]).then(focusPrompt);
    } else if (route.screen === "" && store.current) store.showNone();
  }, [route]);
}
