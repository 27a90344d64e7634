// What a share link shows: one session, to be read, and nothing around it.

import { Transcript } from "../conversation/Transcript";
import "../conversation/conversation.css";
import { harmless } from "../text/visible";
import { useStore } from "./context";
import { Mark } from "./Icon";
import { LinkState } from "./LinkState";

export function SharedFrame() {
  const store = useStore();
  const { current, trouble } = store;
  const title = current?.state.title || store.me.share?.label || "A shared session";
  return (
    <div class="frame shared">
      <header>
        <Mark size={24} />
        <h1 id="title" class="ellipsis">{harmless(title)}</h1>
        <LinkState />
        <span class="muted small">Read only</span>
      </header>
      <main id="column">
        {trouble && <p role="alert" class="trouble">{trouble} The link may be over; ask its sender for a new one.</p>}
        {current ? <Transcript followed={current} rewind={() => {}} /> : !trouble && <p class="muted" role="status">Loading…</p>}
      </main>
    </div>
  );
}
