// Long transcripts: ten thousand messages of any height, and one that streams.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { DiffView } from "../../src/components/diff/Diff";
import { VirtualList, type VirtualListHandle } from "../../src/components/list/VirtualList";
import { Markdown } from "../../src/components/markdown/Markdown";
import { Output } from "../../src/components/output/Output";
import { PROSE } from "./content";

interface Message {
  id: string;
  text: string;
  isOpen?: boolean;
}

const PATCH = `@@ -1,9 +1,9 @@\n${Array.from({ length: 9 }, (_, index) => `-old line ${index}\n+new line ${index}\n`).join("")}`;

function draw(message: Message, index: number) {
  return (
    <div class="gallery-item">
      {index % 7 === 3 && <DiffView diff={{ changes: [{ path: `/a/${index}.py` }], patch: { text: PATCH } }} />}
      {index % 11 === 5 && <Output text={"\u001b[32mok\u001b[0m\n".repeat(12)} />}
      <Markdown text={message.text} streaming={message.isOpen ?? false} />
    </div>
  );
}

const keyOf = (message: Message) => message.id;
const WORDS = "The list draws only what is in view, whatever the height of an item is. ";
const textOf = (index: number) => (index % 13 === 0 ? PROSE : `**${index}** ${WORDS.repeat((index * 7) % 12)}`);
const MANY: Message[] = Array.from({ length: 10_000 }, (_, index) => ({ id: `m${index}`, text: textOf(index) }));

declare global {
  interface Window {
    list: VirtualListHandle | null;
    start: (updates: number, seconds: number) => Promise<void>;
    append: () => void;
  }
}

export function Transcript() {
  const handle = useRef<VirtualListHandle | null>(null);
  useEffect(() => {
    window.list = handle.current;
  }, []);
  return (
    <div class="gallery-frame">
      <VirtualList items={MANY} keyOf={keyOf} draw={draw} label="Conversation" role="log" handle={handle} />
    </div>
  );
}

/** `start` streams words into the last message, in updates that come one by one; `append` adds a message. */
export function Streaming() {
  const [messages, setMessages] = useState<Message[]>(() => MANY.slice(0, 200));
  const [isAtEnd, setAtEnd] = useState(true);
  const handle = useRef<VirtualListHandle | null>(null);
  const append = useCallback(
    () => setMessages((before) => [...before, { id: `new${before.length}`, text: WORDS }]),
    [],
  );
  useEffect(() => {
    window.list = handle.current;
    window.append = append;
    let text = ""; // of the last message, which goes on where it was
    window.start = async (updates, seconds) => {
      const begun = performance.now();
      const words = `${WORDS.repeat(5)}\n\n`.split(/(?<= )/); // marks that close would make the text shorter
      for (let sent = 0; sent < updates; sent++) {
        text += words[sent % words.length]!;
        const open = { id: "open", text, isOpen: true };
        setMessages((before) => (before.at(-1)!.id === "open" ? [...before.slice(0, -1), open] : [...before, open]));
        const due = begun + (seconds * 1000 * (sent + 1)) / updates;
        if (due > performance.now()) await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
      }
      setMessages((before) => [...before.slice(0, -1), { id: "open", text }]);
    };
  }, []);
  return (
    <div class="gallery-frame" data-end={isAtEnd}>
      <VirtualList items={messages} keyOf={keyOf} draw={draw} label="Conversation" role="log" handle={handle} onEnd={setAtEnd} />
    </div>
  );
}
