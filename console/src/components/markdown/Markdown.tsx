// Markdown of an agent as elements.
//
//   <Markdown text={string} streaming={boolean} />
//
// `text`: the whole text so far, which may grow by each render. `streaming`: more is to come; it is then drawn once in a
// frame. Links lead to http and https only, in a new tab that learns nothing of this one; pictures are `data:` only;
// markup in the text is shown as text.

import { Component, type ComponentChildren, type VNode } from "preact";
import { harmless } from "../../text/visible";
import { renderTokens } from "./elements";
import { MarkdownStream, type MarkdownBlock } from "./blocks";
import "./markdown.css";

export interface MarkdownProps {
  text: string;
  streaming?: boolean;
}

export class Markdown extends Component<MarkdownProps> {
  private readonly stream = new MarkdownStream();
  private frame = 0;

  override shouldComponentUpdate(next: MarkdownProps): boolean {
    if (next.text === this.props.text && next.streaming === this.props.streaming) return false;
    if (!next.streaming || document.hidden) return true;
    this.later();
    return false;
  }

  override componentDidMount(): void {
    this.componentDidUpdate();
  }

  override componentDidUpdate(): void {
    if (this.stream.isBehind) this.later();
  }

  override componentWillUnmount(): void {
    cancelAnimationFrame(this.frame);
  }

  private later(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.forceUpdate();
    });
  }

  override render({ text, streaming }: MarkdownProps): VNode {
    const blocks = this.stream.update(text, !streaming);
    return (
      <div class="markdown" dir="auto">
        {blocks.map((block, index) => (
          <Block key={block.key} block={block} isOpen={Boolean(streaming) && index === blocks.length - 1} />
        ))}
      </div>
    );
  }
}

interface BlockProps {
  block: MarkdownBlock;
  isOpen: boolean;
}

/** Drawn again only if its tokens are other ones. */
class Block extends Component<BlockProps> {
  override shouldComponentUpdate(next: BlockProps): boolean {
    return next.block !== this.props.block || next.isOpen !== this.props.isOpen;
  }

  override render({ block, isOpen }: BlockProps): ComponentChildren {
    return renderTokens(block.tokens, isOpen);
  }
}

/** Text of a message without Markdown, as its author wrote it. */
export function PlainText({ text }: { text: string }): VNode {
  return (
    <div class="plain-text" dir="auto">
      {harmless(text)}
    </div>
  );
}
