// The text of a message, for a place that shows or copies text alone.

import type { ContentBlock } from "../state/types";

/** The text of blocks; what is no text is named. */
export function plainText(blocks: readonly ContentBlock[]): string {
  return blocks.map(blockText).filter(Boolean).join("\n");
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case "text": return block.text;
    case "image": return "[image]";
    case "audio": return "[audio]";
    case "resource_link": return `@${block.title ?? block.name ?? block.uri}`;
    case "resource": return `@${block.resource?.uri ?? "resource"}`;
    default: return "";
  }
}
