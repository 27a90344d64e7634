// The transcript: a box that nothing in it can leave, so whatever the agent says there, it cannot look like a question.
// Of ten thousand messages only those in view are in the page.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import { useStore } from "../app/context";
import { VirtualList } from "../components/list/VirtualList";
import type { CallItem, Item } from "../state/session";
import type { Followed, QueuedPrompt } from "../state/store";
import { CallCard } from "./Call";
import { Folds } from "./fold";
import { useFollowing } from "./following";
import { byHelper } from "./helpers";
import { memo } from "./memo";
import { MessageView } from "./Message";
import { NoticeLine } from "./Notice";
import { plainText } from "./text";

interface Props {
  followed: Followed;
  rewind: (messageId: string, text: string) => void;
}

/** What stands in a line of the list. It is another object when it is drawn in another way. */
interface Row {
  readonly key: string;
  readonly item: Item | null;
  readonly queued: QueuedPrompt | null;
  readonly isAsked: boolean;
  readonly rewind: Props["rewind"] | null;
  /** What the helper has called that this call has started. */
  readonly calls: readonly CallItem[];
}

const NONE: readonly CallItem[] = [];

export function Transcript({ followed, rewind }: Props) {
  const store = useStore();
  const { state } = followed;
  const frame = useRef<HTMLDivElement>(null);
  const { isFollowing, jump } = useFollowing(frame, store.jumps, state.id);
  const folds = useMemo(() => new Map<string, boolean>(), [state.id]);
  const latest = useRef(rewind);
  latest.current = rewind;
  const goBack = useMemo<Props["rewind"]>(() => (messageId, text) => latest.current(messageId, text), []);
  const mayRewind = store.abilities.rewinds && store.mayPrompt && !state.isRunning;
  const asked = new Set<unknown>([...store.questions.values()].map(({ params }) => params.subject?.toolCall?.toolCallId));
  const rows = useRows(followed, asked, mayRewind ? goBack : null);
  return (
    <div class="transcript-frame" ref={frame}>
      <Folds.Provider value={folds}>
        <VirtualList key={state.id} id="transcript" state={state.state} role="log" label="Conversation" items={rows} keyOf={keyOf}
          draw={drawRow} isFollowing={isFollowing} busy={state.isRunning} />
      </Folds.Provider>
      <Announcer followed={followed} />
      {!isFollowing && (
        <button class="button jump" onClick={jump} aria-label="To the end of the conversation">
          <Icon name="down" size={18} />
        </button>
      )}
    </div>
  );
}

const keyOf = (row: Row) => row.key;
const SHORTENED: Row = { key: "shortened", item: null, queued: null, isAsked: false, rewind: null, calls: NONE };

/** The rows of a session; what would be drawn as before is the row of before. */
function useRows({ state, queue }: Followed, asked: Set<unknown>, rewind: Row["rewind"]): Row[] {
  const known = useRef(new WeakMap<object, Row>());
  const row = (of: object, fresh: Row): Row => {
    const before = known.current.get(of);
    if (before && before.isAsked === fresh.isAsked && before.rewind === fresh.rewind && isSame(before.calls, fresh.calls)) return before;
    known.current.set(of, fresh);
    return fresh;
  };
  const { own, calls } = byHelper(state.items);
  const rows = own.map((item) => {
    const isAsked = item.type === "call" && asked.has(item.call.toolCallId);
    return row(item, { key: item.key, item, queued: null, isAsked, rewind: item.type === "user" ? rewind : null, calls: calls.get(item.key) ?? NONE });
  });
  if (state.isShortened) rows.unshift(SHORTENED);
  for (const queued of queue) rows.push(row(queued, { key: queued.key, item: null, queued, isAsked: false, rewind: null, calls: NONE }));
  return rows;
}

function isSame(some: readonly CallItem[], others: readonly CallItem[]): boolean {
  return some.length === others.length && some.every((one, index) => one === others[index]);
}

function drawRow({ item, queued, isAsked, rewind, calls }: Row) {
  return (
    <div class="story">
      {item ? <ItemView item={item} isAsked={isAsked} rewind={rewind} calls={calls} />
        : queued ? <Queued prompt={queued} />
        : <p class="muted small">Earlier messages are not shown.</p>}
    </div>
  );
}

interface ItemProps {
  item: Item;
  isAsked: boolean;
  rewind: Props["rewind"] | null;
  calls?: readonly CallItem[];
}

/** An item is drawn again only when it is another object. */
export const ItemView = memo<ItemProps>(
  ({ item, isAsked, rewind, calls = NONE }) => {
    switch (item.type) {
      case "call": return <CallCard item={item} isAsked={isAsked} calls={calls} />;
      case "notice": return <NoticeLine item={item} />;
      default: return <MessageView item={item} rewind={rewind} />;
    }
  },
  (before, after) => before.item === after.item && before.isAsked === after.isAsked && (before.rewind === null) === (after.rewind === null)
    && isSame(before.calls ?? NONE, after.calls ?? NONE),
);

const PLACES = { sent: "", added: "is added to the turn", waiting: "waits until the agent is done" };

/** A prompt that is not part of the conversation yet. */
export function Queued({ prompt }: { prompt: QueuedPrompt }) {
  return (
    <div class="item message user queued">
      <div class="text plain">{plainText(prompt.blocks)}</div>
      {PLACES[prompt.is] && <div class="small">{PLACES[prompt.is]}</div>}
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
