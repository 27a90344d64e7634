import { Icon } from "../app/Icon";
import { useApp } from "../app/context";
import type { NoticeItem } from "../state/session";
import { visible } from "../text/visible";
import { retryLast } from "./retry";

/** A line that is not of the conversation itself: how a turn ended, what the agent wants known. */
export function NoticeLine({ item }: { item: NoticeItem }) {
  const { store } = useApp();
  return (
    <div class={`item notice ${item.severity}`}>
      <Icon name={item.severity === "info" ? "info" : "warning"} size={16} />
      <div>
        <strong>{visible(item.title)}</strong>
        {item.description && <div class="plain">{visible(item.description)}</div>}
        {item.isTurnFailure && store.mayPrompt && (
          <button type="button" class="button again" onClick={() => void retryLast(store)}>
            <Icon name="retry" size={16} /> Try again
          </button>
        )}
      </div>
    </div>
  );
}
