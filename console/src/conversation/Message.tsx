// What a person or the agent said, and what the agent thought.

import { Icon } from "../app/Icon";
import { CopyButton } from "../components/CopyButton";
import type { MessageItem } from "../state/session";
import { harmless } from "../text/visible";
import { ContentView } from "./Content";
import { Markdown } from "./rich";
import { plainText } from "./text";
import { useFold } from "./fold";

interface Props {
  item: MessageItem;
  /** Go back to before this prompt, where that is possible. */
  rewind: ((messageId: string, text: string) => void) | null;
}

export function MessageView({ item, rewind }: Props) {
  if (item.type === "thought") return <Thought item={item} />;
  const isUser = item.type === "user";
  return (
    <div class={`item message ${item.type}`}>
      <div class={isUser ? "text plain" : "text"}>
        {item.blocks.map((block, index) =>
          block.type === "text" ? (
            isUser ? <div key={index}>{harmless(block.text)}</div> : <Markdown key={index} text={block.text} isOpen={item.isOpen} />
          ) : (
            <ContentView key={index} block={block} />
          ),
        )}
      </div>
      {!item.isOpen && (
        <div class="actions">
          <CopyButton text={() => plainText(item.blocks)} what={isUser ? "this prompt" : "this answer"} isIcon />
          {isUser && rewind && (
            <button type="button" class="button quiet icon back" data-message={item.id} title="Go back to before this prompt"
              aria-label="Go back to before this prompt" onClick={() => rewind(item.id, plainText(item.blocks))}>
              <Icon name="back" size={16} />
            </button>
          )}
        </div>
      )}
    </div>
  );
}

/** Open while the agent thinks, folded afterwards unless a person has opened it. */
function Thought({ item }: { item: MessageItem }) {
  const { isOpen, toggle } = useFold(item.key, item.isOpen);
  return (
    <details class="item message thought" open={isOpen}>
      <summary onClick={toggle}>{item.isOpen ? "Thinking…" : "Thought"}</summary>
      <div class="text">
        {item.blocks.map((block, index) =>
          block.type === "text" ? <Markdown key={index} text={block.text} isOpen={item.isOpen} /> : <ContentView key={index} block={block} />,
        )}
      </div>
    </details>
  );
}
