// A button that opens a menu of actions.
//
//   <Menu label={string} items={readonly MenuItem[]} class?={string}>what the button shows</Menu>
//
// `label`: the name of the button and of the menu. `items`: `{ label, onPick, hint?, isDangerous?, isDisabled? }`. Arrows,
// Home, End and first letters walk; Enter picks; Escape, Tab and a click elsewhere close. The focus goes back to the button
// before an action runs, so that an action may move it.

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import "./overlay.css";

export interface MenuItem {
  label: string;
  onPick: () => void;
  hint?: string;
  isDangerous?: boolean;
  isDisabled?: boolean;
}

export interface MenuProps {
  label: string;
  items: readonly MenuItem[];
  class?: string;
  children?: ComponentChildren;
}

export function Menu({ label, items, class: name = "button quiet icon", children }: MenuProps): VNode {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    setOpen(true);
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class={name}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
        onKeyDown={onKey}
      >
        {children ?? <span aria-hidden="true">⋯</span>}
      </button>
      {isOpen && <MenuList id={id} label={label} items={items} anchor={button.current!} onClose={close} />}
    </>
  );
}

interface MenuListProps {
  id: string;
  label: string;
  items: readonly MenuItem[];
  anchor: HTMLElement;
  onClose: () => void;
}

function MenuList({ id, label, items, anchor, onClose }: MenuListProps): VNode {
  const list = useRef<HTMLDivElement>(null);
  const buttons = () => [...list.current!.querySelectorAll<HTMLButtonElement>("button:not(:disabled)")];
  useLayoutEffect(() => {
    list.current!.showPopover?.(); // above everything, and not cut off by what scrolls
    place(list.current!, anchor);
    buttons()[0]?.focus();
  }, []);
  useEffect(() => {
    const elsewhere = (event: Event) => {
      const target = event.target as Node;
      if (!list.current?.contains(target) && !anchor.contains(target)) onClose();
    };
    document.addEventListener("pointerdown", elsewhere);
    window.addEventListener("resize", onClose);
    return () => {
      document.removeEventListener("pointerdown", elsewhere);
      window.removeEventListener("resize", onClose);
    };
  }, []);
  const onKey = (event: KeyboardEvent) => {
    const all = buttons();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const go = (to: number) => all[(to + all.length) % all.length]?.focus();
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(-1);
    else if (event.key === "Escape" || event.key === "Tab") onClose();
    else if (!startsWith(all, at, event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const pick = (item: MenuItem) => {
    onClose();
    item.onPick();
  };
  return (
    <div ref={list} id={id} class="menu" role="menu" aria-label={label} popover="manual" onKeyDown={onKey}>
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class={item.isDangerous ? "danger" : ""}
          disabled={item.isDisabled ?? false}
          onClick={() => pick(item)}
        >
          <span>{item.label}</span>
          {item.hint && <span class="menu-hint">{item.hint}</span>}
        </button>
      ))}
    </div>
  );
}

function startsWith(all: HTMLButtonElement[], at: number, event: KeyboardEvent): boolean {
  if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return false;
  const order = [...all.slice(at + 1), ...all.slice(0, at + 1)];
  const found = order.find((button) => button.textContent?.toLowerCase().startsWith(event.key.toLowerCase()));
  found?.focus();
  return found !== undefined;
}

/** Below the button, or above it where there is more room; inside of the window. */
function place(menu: HTMLElement, anchor: HTMLElement): void {
  const [box, size] = [anchor.getBoundingClientRect(), menu.getBoundingClientRect()];
  const below = window.innerHeight - box.bottom;
  const isBelow = below >= size.height || below >= box.top;
  const top = isBelow ? box.bottom + 4 : box.top - size.height - 4;
  menu.style.top = `${Math.max(4, Math.min(top, window.innerHeight - size.height - 4))}px`;
  menu.style.left = `${Math.max(4, Math.min(box.right - size.width, window.innerWidth - size.width - 4))}px`;
}
