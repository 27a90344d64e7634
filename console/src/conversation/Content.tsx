// One block of content that an agent sent.

import type { ContentBlock } from "../state/types";
import { visible, webAddress } from "../text/visible";
import { Markdown } from "./rich";

const IMAGE = 8 * 1024 * 1024; // characters of base64
const TEXT = 2 * 1024 * 1024; // characters
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function ContentView({ block }: { block: ContentBlock }) {
  switch (block.type) {
    case "text": return <div class="text"><Markdown text={block.text.slice(0, TEXT)} isOpen={false} /></div>;
    case "image": return <ImageView data={block.data ?? ""} mimeType={block.mimeType} />;
    case "resource_link": return <p><LinkTo label={block.title ?? block.name ?? block.uri} address={block.uri} /></p>;
    case "resource": {
      const { uri, text } = block.resource ?? {};
      return (
        <details>
          <summary>{visible(uri ?? "resource")}</summary>
          <pre class="code">{typeof text === "string" ? text.slice(0, TEXT) : "[not text]"}</pre>
        </details>
      );
    }
    default: return <p class="muted">[{visible((block as { type: string }).type)}]</p>;
  }
}

function ImageView({ data, mimeType }: { data: string; mimeType: string }) {
  if (!IMAGES.has(mimeType) || data.length > IMAGE || !/^[A-Za-z0-9+/]*={0,2}$/.test(data)) {
    return <p class="muted">[an image that is not shown]</p>;
  }
  return <img class="image" alt="A picture in the conversation" src={`data:${mimeType};base64,${data}`} />;
}

/** A link to elsewhere, which learns nothing of us; text where the address is of another kind. */
function LinkTo({ label, address }: { label: string; address: string }) {
  const href = webAddress(address);
  if (href === null) return <span>{visible(label === address ? label : `${label} (${address})`)}</span>;
  return <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">{visible(label)}</a>;
}

export function JsonView({ value }: { value: unknown }) {
  return <pre class="code">{visible(JSON.stringify(value, null, 2) ?? "")}</pre>;
}
