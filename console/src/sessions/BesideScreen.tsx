// Several sessions side by side, each with its own prompt, questions and stop.

import { useEffect, useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import { useStore } from "../app/context";
import { href, navigate } from "../app/router";
import type { ScreenProps } from "../app/screens";
import { harmless } from "../text/visible";
import { Column } from "./Column";
import "../conversation/conversation.css";
import "./sessions.css";

const MOST = 4;

export default function BesideScreen({ route }: ScreenProps) {
  const store = useStore();
  const ids = [...new Set(route.parts.filter(Boolean))].slice(0, MOST);
  const names = ids.join(" ");
  const [missing, setMissing] = useState<readonly string[]>([]);
  useEffect(() => {
    if (!store.isListed) return;
    for (const id of ids.filter((one) => !store.followed.has(one))) {
      void store.find(id).then((found) => (found ? store.attend(found) : setMissing((before) => [...before, id])));
    }
  }, [names, store.link.is, store.isListed]);
  if (ids.length === 0) return <section class="nothing"><h2>No sessions are chosen</h2><p><a class="button" href={href("sessions")}>Choose some</a></p></section>;
  const close = (id: string) => {
    const left = ids.filter((one) => one !== id);
    navigate(left.length > 1 ? href("beside", ...left) : left.length ? href("session", left[0]!) : href("sessions"));
  };
  return (
    <div class="beside">
      {ids.map((id) => {
        const followed = store.followed.get(id);
        return (
          <section key={id} aria-label={harmless(store.titleOf(id))}>
            <header>
              <h2 class="ellipsis"><a href={href("session", id)}>{harmless(store.titleOf(id))}</a></h2>
              <button class="button quiet icon" aria-label={`Close ${harmless(store.titleOf(id))}`} onClick={() => close(id)}><Icon name="close" size={18} /></button>
            </header>
            {followed ? <Column followed={followed} /> : <p class="muted story-box" role="status">{missing.includes(id) ? "There is no such session here." : "Loading…"}</p>}
          </section>
        );
      })}
    </div>
  );
}
