// Pictures and files that go with a prompt: read in the browser, and sent as blocks of content.

import type { ContentBlock } from "../state/types";
import { bytes } from "../text/words";

const IMAGE = 5 * 1000 * 1000; // bytes of one picture; providers take no larger ones
const TEXT = 1000 * 1000; // bytes of one text
const MOST = 20;
const ALL = 16 * 1000 * 1000; // characters of all that goes with a prompt: what waits to be sent is kept in memory
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export interface Attachment {
  readonly key: string;
  readonly name: string;
  readonly block: ContentBlock;
}

/** What can be sent: what the agent takes. */
export interface Takes {
  images: boolean;
  embeds: boolean;
}

let made = 0;

/** Read files; what cannot be attached becomes a sentence. */
export async function readFiles(files: readonly File[], takes: Takes, there: readonly Attachment[]): Promise<[Attachment[], string[]]> {
  const attachments: Attachment[] = [];
  const troubles: string[] = [];
  for (const file of files) {
    if (there.length + attachments.length >= MOST) {
      troubles.push(`A prompt takes at most ${MOST} files. Send these first.`);
      break;
    }
    const read = await readFile(file, takes);
    const size = [...there, ...attachments].reduce((sum, { block }) => sum + sizeOf(block), 0);
    if (typeof read === "string") troubles.push(read);
    else if (size + sizeOf(read) > ALL) troubles.push(`${file.name || "picture"} is too much for one prompt. Send the others first.`);
    else attachments.push({ key: `attachment-${++made}`, name: file.name || "picture", block: read });
  }
  return [attachments, troubles];
}

function sizeOf(block: ContentBlock): number {
  if (block.type === "image") return block.data?.length ?? 0;
  return block.type === "resource" ? block.resource?.text?.length ?? 0 : 0;
}

async function readFile(file: File, takes: Takes): Promise<ContentBlock | string> {
  const name = file.name || "picture";
  if (IMAGES.has(file.type)) {
    if (!takes.images) return `This agent takes no pictures, so ${name} was not attached.`;
    if (file.size > IMAGE) return `${name} has ${bytes(file.size)}; at most ${bytes(IMAGE)} can be sent. Make it smaller.`;
    return { type: "image", mimeType: file.type, data: await base64(file) };
  }
  if (!takes.embeds) return `This agent takes no files from a browser, so ${name} was not attached. Name it with @ instead.`;
  if (file.size > TEXT) return `${name} has ${bytes(file.size)}; at most ${bytes(TEXT)} of text can be sent. Put it into the folder and name it with @.`;
  const text = await file.text();
  if (text.includes("\u0000") || text.includes("\ufffd")) return `${name} is neither text nor a picture that models take, so it was not attached.`;
  const uri = `file:///${name.split("/").map(encodeURIComponent).join("/")}`;
  return { type: "resource", resource: { uri, text, mimeType: file.type || "text/plain" } };
}

/** The bytes of a file as base64. */
async function base64(file: Blob): Promise<string> {
  const data = new Uint8Array(await file.arrayBuffer());
  let text = "";
  // In pieces: a call takes no million arguments.
  for (let at = 0; at < data.length; at += 0x8000) text += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(text);
}
