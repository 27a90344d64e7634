// A list of which only what is in view is in the page: ten thousand items of any height, which may change.
//
//   <VirtualList
//     items={readonly T[]} keyOf={(item) => string} draw={(item, index) => element} label={string}
//     isFollowing? estimate?={(item) => pixels} role?={"log" | "list" | "region"} busy?={boolean}
//     onEnd?={(isAtEnd) => void} handle?={{ current: VirtualListHandle | null }} class?={string} id?={string} state?={string}
//   />
//
// `items`: an item that did not change must be the same object: it is not drawn again then. `keyOf`: an identity that
// outlives a change of the item. `draw`: the same function each time, or all of the view is drawn again. `isFollowing` (true): while the end is in view it stays in view, whatever grows or comes;
// a reader who has scrolled up is left where they are. `busy`: the last item still grows, so nothing is read aloud yet.
// `state`: goes into `data-state`. `onEnd`: the end came into view, or left it. `handle.current` scrolls: see `VirtualListHandle`.
//
// Items in view lie in the flow of the page, below a blank as high as all items before them, so that an item that grows
// pushes the others in the same layout. Where it scrolls and which items those are is @tanstack/virtual-core's work.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { Component, type ComponentChildren, createRef, type VNode } from "preact";
import "./list.css";

const NEAR_END = 24; // pixels from the end that still count as the end
const OVERSCAN = 3; // items above and below the view, so that scrolling shows no blank
const USUAL_HEIGHT = 120; // of an item that was never in view

export interface VirtualListHandle {
  scrollToEnd(): void;
  /** Bring an item into view; false: there is no such item. */
  scrollToKey(key: string): boolean;
  isAtEnd(): boolean;
  focus(): void;
}

export interface VirtualListProps<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  draw: (item: T, index: number) => ComponentChildren;
  label: string;
  isFollowing?: boolean;
  estimate?: (item: T) => number;
  role?: "log" | "list" | "region";
  busy?: boolean;
  onEnd?: (isAtEnd: boolean) => void;
  handle?: { current: VirtualListHandle | null };
  class?: string;
  id?: string;
  state?: string;
}

export class VirtualList<T> extends Component<VirtualListProps<T>> implements VirtualListHandle {
  private readonly scroller = createRef<HTMLDivElement>();
  private readonly virtualizer: Virtualizer<HTMLDivElement, HTMLDivElement>;
  private unmount: () => void = () => {};
  private wasAtEnd: boolean | null = null;

  constructor(props: VirtualListProps<T>) {
    super(props);
    this.virtualizer = new Virtualizer(this.options(props));
  }

  scrollToEnd(): void {
    this.virtualizer.scrollToEnd();
  }

  scrollToKey(key: string): boolean {
    const index = this.props.items.findIndex((item) => this.props.keyOf(item) === key);
    if (index >= 0) this.virtualizer.scrollToIndex(index, { align: "start" });
    return index >= 0;
  }

  isAtEnd(): boolean {
    return this.virtualizer.isAtEnd(NEAR_END);
  }

  focus(): void {
    this.scroller.current?.focus();
  }

  override componentDidMount(): void {
    this.unmount = this.virtualizer._didMount();
    this.virtualizer._willUpdate();
    if (this.props.handle) this.props.handle.current = this;
    if (this.props.isFollowing ?? true) this.virtualizer.scrollToEnd();
    this.tellEnd();
  }

  override componentDidUpdate(): void {
    this.virtualizer._willUpdate();
    this.tellEnd();
  }

  override componentWillUnmount(): void {
    if (this.props.handle?.current === this) this.props.handle.current = null;
    this.unmount();
  }

  private options(props: VirtualListProps<T>) {
    const { items, keyOf, estimate } = props;
    const isFollowing = props.isFollowing ?? true;
    return {
      count: items.length,
      getItemKey: (index: number) => keyOf(items[index]!),
      estimateSize: (index: number) => estimate?.(items[index]!) ?? USUAL_HEIGHT,
      getScrollElement: () => this.scroller.current,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      overscan: OVERSCAN,
      anchorTo: isFollowing ? ("end" as const) : ("start" as const),
      followOnAppend: isFollowing,
      scrollEndThreshold: NEAR_END,
      onChange: () => {
        this.tellEnd();
        this.forceUpdate();
      },
    };
  }

  private tellEnd(): void {
    const isAtEnd = this.isAtEnd();
    if (isAtEnd === this.wasAtEnd) return;
    this.wasAtEnd = isAtEnd;
    this.props.onEnd?.(isAtEnd);
  }

  override render(props: VirtualListProps<T>): VNode {
    this.virtualizer.setOptions(this.options(props));
    const shown = this.virtualizer.getVirtualItems();
    const role = props.role ?? "region";
    return (
      <div
        ref={this.scroller}
        id={props.id}
        data-state={props.state}
        class={`virtual-list ${props.class ?? ""}`}
        tabIndex={0}
        role={role}
        aria-label={props.label}
        aria-busy={props.busy ?? false}
        aria-live={role === "log" ? "off" : undefined} // items come into the page by scrolling too: `Announcer` reads
      >
        <div class="virtual-space" style={{ height: `${this.virtualizer.getTotalSize()}px` }} role="presentation">
          <div
            class="virtual-view"
            style={{ transform: `translateY(${shown[0]?.start ?? 0}px)` }}
            role="presentation"
          >
            {shown.map(({ key, index }) => this.place(String(key), index, role === "list"))}
          </div>
        </div>
      </div>
    );
  }

  private place(key: string, index: number, isInList: boolean): VNode {
    const { items, draw } = this.props;
    const position = { role: "listitem" as const, "aria-setsize": items.length, "aria-posinset": index + 1 };
    return (
      <div
        key={key}
        data-index={index}
        ref={this.virtualizer.measureElement}
        class="virtual-item"
        {...(isInList ? position : {})}
      >
        <Item item={items[index]!} index={index} draw={draw} />
      </div>
    );
  }
}

interface ItemProps<T> {
  item: T;
  index: number;
  draw: (item: T, index: number) => ComponentChildren;
}

class Item<T> extends Component<ItemProps<T>> {
  override shouldComponentUpdate(next: ItemProps<T>): boolean {
    return next.item !== this.props.item || next.index !== this.props.index || next.draw !== this.props.draw;
  }

  override render({ item, index, draw }: ItemProps<T>): ComponentChildren {
    return draw(item, index);
  }
}
