// A conversation as one text in Markdown, for the clipboard or a file.

import type { CallItem, SessionState } from "../state/session";
import { plainText } from "./text";

const SEQUENCE = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
const FILE_NAME = 60; // characters of a title

/** What was said and done, without thoughts. */
export function asMarkdown(state: SessionState): string {
  const parts = [`# ${state.title || "Untitled"}`];
  for (const item of state.items) {
    if (item.type === "user") parts.push(`## You\n\n${plainText(item.blocks)}`);
    else if (item.type === "agent") parts.push(plainText(item.blocks));
    else if (item.type === "call") parts.push(callText(item));
    else if (item.type === "notice") parts.push(`*${item.title}*`);
  }
  return `${parts.join("\n\n")}\n`;
}

/** Save it as a file of this browser. */
export function download(state: SessionState): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([asMarkdown(state)], { type: "text/markdown" }));
  const name = (state.title || "session").replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+/, "").slice(0, FILE_NAME);
  link.download = `${name || "session"}.md`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function callText({ call, terminals }: CallItem): string {
  const lines = [`**${call.title || call.name || "Tool call"}** ${call.status ?? ""}`.trim()];
  for (const content of call.content ?? []) {
    if (content.type === "diff" && content.patch?.text) lines.push(fenced(content.patch.text, "diff"));
    else if (content.type === "content" && content.content.type === "text") lines.push(fenced(content.content.text));
    else if (content.type === "terminal") lines.push(fenced((terminals.get(content.terminalId)?.text ?? "").replace(SEQUENCE, "")));
  }
  return lines.join("\n\n");
}

/** A block of code, in a fence that is longer than any in it. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}
