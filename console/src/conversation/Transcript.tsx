// The transcript: a box that nothing in it can leave, so whatever the agent says there, it cannot look like a question.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import { useStore } from "../app/context";
import type { Item } from "../state/session";
import type { Followed, QueuedPrompt } from "../state/store";
import { CallCard } from "./Call";
import { memo } from "./memo";
import { MessageView } from "./Message";
import { NoticeLine } from "./Notice";
import { plainText } from "./text";
import { useFollowing } from "./following";
import { Working } from "./Working";

interface Props {
  followed: Followed;
  rewind: (messageId: string, text: string) => void;
}

export function Transcript({ followed, rewind }: Props) {
  const store = useStore();
  const { state, queue } = followed;
  const box = useRef<HTMLElement>(null);
  const { isFollowing, jump } = useFollowing(box, store.jumps);
  const mayRewind = store.abilities.rewinds && store.mayPrompt && !state.isRunning;
  const asked = new Set([...store.questions.values()].map(({ params }) => params.subject?.toolCall?.toolCallId));
  return (
    <div class="transcript-frame">
      <section id="transcript" ref={box} tabIndex={0} role="log" aria-label="Conversation" aria-live="off" data-state={state.state}>
        <div class="story" data-session={state.id} key={state.id}>
          {state.isShortened && <p class="muted small">Earlier messages are not shown.</p>}
          {state.items.map((item) => (
            <ItemView key={item.key} item={item} isAsked={item.type === "call" && asked.has(item.call.toolCallId)} rewind={mayRewind ? rewind : null} />
          ))}
          {queue.map((prompt) => <Queued key={prompt.key} prompt={prompt} />)}
          <Working state={state} />
        </div>
      </section>
      <Announcer followed={followed} />
      {!isFollowing && (
        <button class="button jump" onClick={jump} aria-label="To the end of the conversation">
          <Icon name="down" size={18} />
        </button>
      )}
    </div>
  );
}

interface ItemProps {
  item: Item;
  isAsked: boolean;
  rewind: Props["rewind"] | null;
}

/** An item is drawn again only when it is another object. */
export const ItemView = memo<ItemProps>(
  ({ item, isAsked, rewind }) => {
    switch (item.type) {
      case "call": return <CallCard item={item} isAsked={isAsked} />;
      case "notice": return <NoticeLine item={item} />;
      default: return <MessageView item={item} rewind={rewind} />;
    }
  },
  (before, after) => before.item === after.item && before.isAsked === after.isAsked && (before.rewind === null) === (after.rewind === null),
);

function Queued({ prompt }: { prompt: QueuedPrompt }) {
  return (
    <div class="item message user queued">
      <div class="text plain">{plainText(prompt.blocks)}</div>
    </div>
  );
}

/** Says to a screen reader what was answered, when it is whole: text that streams would be read in pieces. */
function Announcer({ followed }: { followed: Followed }) {
  const { state } = followed;
  const [said, setSaid] = useState("");
  const wasRunning = useRef(state.isRunning);
  useEffect(() => {
    if (wasRunning.current && !state.isRunning) {
      const last = state.items.findLast((item) => item.type === "agent" || item.type === "notice");
      setSaid(!last ? "The agent is done." : last.type === "notice" ? last.title : "blocks" in last ? plainText(last.blocks) : "");
    }
    wasRunning.current = state.isRunning;
  });
  useLayoutEffect(() => setSaid(""), [state]);
  return <div class="sr-only" role="status">{said.slice(0, 2000)}</div>;
}
