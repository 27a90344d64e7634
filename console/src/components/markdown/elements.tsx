// Tokens of markdown-it as elements. The tokens are a flat list with openings and closings; this makes the tree.

import type { Token } from "markdown-it";
import { type ComponentChild, h } from "preact";
import { harmless, visible, webAddress } from "../../text/visible";
import { CodeBlock } from "../code/CodeBlock";

const PICTURE = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=]+$/i;
const TASK = /^\[([ xX])\](?=\s)/;
const BREAK = /<br\s{0,5}\/?>/i; // the only way to break a line in a cell of a table, so models write it

interface OpenElement {
  tag: string;
  attributes: Record<string, string>;
  children: ComponentChild[];
}

/** The elements of one block. `isOpen`: its end may not be here yet. */
export function renderTokens(tokens: readonly Token[], isOpen: boolean): ComponentChild[] {
  const root: OpenElement = { tag: "", attributes: {}, children: [] };
  const stack: OpenElement[] = [root];
  for (const token of tokens) {
    const parent = stack.at(-1)!;
    if (token.hidden) continue; // the paragraphs of a tight list
    if (token.nesting > 0) stack.push(openElement(token));
    else if (token.nesting < 0) close(stack);
    else parent.children.push(...leaf(token, stack, isOpen));
  }
  while (stack.length > 1) close(stack);
  return root.children;
}

function close(stack: OpenElement[]): void {
  const element = stack.pop()!;
  const parent = stack.at(-1);
  if (!parent) return;
  parent.children.push(element.tag === "a" ? link(element) : wrap(element));
}

/** A table may be wider than the column: it scrolls in a frame of its own. */
function wrap({ tag, attributes, children }: OpenElement): ComponentChild {
  const element = h(tag, attributes, ...children);
  if (tag !== "table") return element;
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Table">
      {element}
    </div>
  );
}

function openElement(token: Token): OpenElement {
  const attributes: Record<string, string> = {};
  let tag = token.tag;
  if (/^h[1-6]$/.test(tag)) tag = `h${Math.min(Number(tag[1]) + 1, 6)}`; // below the heading of the page
  const align = /text-align:(left|center|right)/.exec(String(token.attrGet("style") ?? ""))?.[1];
  if (align) attributes.class = `align-${align}`;
  if (tag === "th") attributes.scope = "col";
  if (tag === "ol" && token.attrGet("start") !== null) attributes.start = String(token.attrGet("start"));
  if (tag === "a") attributes.href = String(token.attrGet("href") ?? "");
  return { tag, attributes, children: [] };
}

function leaf(token: Token, stack: OpenElement[], isOpen: boolean): ComponentChild[] {
  switch (token.type) {
    case "inline":
      return inline(token, stack);
    case "fence":
    case "code_block":
      return [<CodeBlock code={trimEnd(token.content)} language={token.info.trim().split(/\s+/)[0] ?? ""} isOpen={isOpen} />];
    case "code_inline":
      return [<code>{harmless(token.content)}</code>];
    case "softbreak":
      return ["\n"];
    case "hardbreak":
      return [<br />];
    case "hr":
      return [<hr />];
    case "image":
      return [picture(token)];
    default:
      return words(token.content);
  }
}

function inline(token: Token, stack: OpenElement[]): ComponentChild[] {
  const children = token.children ?? [];
  const elements = renderTokens(children, false);
  const item = stack.findLast((element) => element.tag !== "p");
  const mark = item?.tag === "li" && item.children.length === 0 ? TASK.exec(children[0]?.content ?? "") : null;
  if (!item || !mark || children[0]?.type !== "text") return elements;
  const isDone = mark[1] !== " ";
  item.attributes.class = "task";
  elements[0] = String(elements[0]).slice(mark[0].length);
  return [<input type="checkbox" disabled checked={isDone} aria-label={isDone ? "done" : "to do"} />, ...elements];
}

function words(text: string): ComponentChild[] {
  return text.split(BREAK).flatMap((part, index) => (index > 0 ? [<br />, harmless(part)] : [harmless(part)]));
}

function trimEnd(code: string): string {
  return code.endsWith("\n") ? code.slice(0, -1) : code;
}

/** A link to elsewhere; the address as text where it is of another kind. */
function link({ attributes, children }: OpenElement): ComponentChild {
  const address = attributes.href ?? "";
  const href = webAddress(address);
  if (href !== null) {
    return (
      <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    );
  }
  const isSame = children.length === 1 && children[0] === harmless(address);
  return isSame || address === "" ? <span>{children}</span> : <span>{children} ({visible(address)})</span>;
}

/** A picture that is in the text itself; a link to any other: a page that shows pictures of elsewhere tells on its reader. */
function picture(token: Token): ComponentChild {
  const address = String(token.attrGet("src") ?? "");
  const label = harmless(plainText(token.children ?? []));
  if (PICTURE.test(address)) return <img class="picture" src={address} alt={label} />;
  return link({ tag: "a", attributes: { href: address }, children: [label || "image"] });
}

function plainText(tokens: readonly Token[]): string {
  return tokens.map((token) => (token.children?.length ? plainText(token.children) : token.content)).join("");
}
