import { useState } from "preact/hooks";
import { Icon } from "../app/Icon";

const SHOWN = 1500; // milliseconds for which it says that it has copied

export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    const isDone = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    setSaid(isDone ? "Copied" : "This browser does not let the page copy");
    setTimeout(() => setSaid(""), SHOWN);
  };
  return (
    <button type="button" class="button quiet icon" title={said || label} aria-label={label} onClick={copy}>
      <Icon name={said === "Copied" ? "check" : "copy"} size={16} />
      {said && <span class="sr-only" role="status">{said}</span>}
    </button>
  );
}
