// A dialog above the page, by the browser's own `dialog`: the page behind it can be neither reached nor read, Escape and a
// click beside it close it, and the focus goes back to where it was.
//
//   <Dialog title={string} onClose={() => void} class?={string}>…</Dialog>
//   <ConfirmDialog title={string} confirm={string} isDangerous?={boolean} onConfirm={() => void} onClose={() => void}>…</ConfirmDialog>
//
// It is open while it is drawn: `{isAsked && <Dialog …/>}`. An element with `autofocus` inside has the focus first. A
// dialog is not for questions of an agent, which must not take the keyboard from a person who types.

import type { ComponentChildren, VNode } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import "./overlay.css";

export interface DialogProps {
  title: string;
  onClose: () => void;
  class?: string;
  children?: ComponentChildren;
}

export function Dialog({ title, onClose, class: name = "", children }: DialogProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const element = dialog.current!;
    const before = document.activeElement;
    element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const onCancel = (event: Event) => {
    event.preventDefault(); // what is drawn decides whether it is open
    onClose();
  };
  const onClick = (event: MouseEvent) => {
    if (event.target === dialog.current && isBeside(dialog.current!, event)) onClose();
  };
  return (
    <dialog ref={dialog} class={`dialog ${name}`} aria-labelledby={id} onCancel={onCancel} onClick={onClick}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="button quiet icon" aria-label="Close" onClick={onClose}>
          <span aria-hidden="true">×</span>
        </button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

function isBeside(element: Element, { clientX, clientY }: MouseEvent): boolean {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

export interface ConfirmDialogProps extends DialogProps {
  confirm: string;
  onConfirm: () => void;
  isDangerous?: boolean;
}

export function ConfirmDialog({ confirm, onConfirm, isDangerous = false, onClose, children, ...rest }: ConfirmDialogProps): VNode {
  const decide = () => {
    onClose();
    onConfirm();
  };
  return (
    <Dialog {...rest} onClose={onClose}>
      {children}
      <p class="dialog-buttons">
        <button type="button" class="button" autofocus={isDangerous} onClick={onClose}>
          Cancel
        </button>
        <button type="button" class={`button ${isDangerous ? "danger" : "primary"}`} autofocus={!isDangerous} onClick={decide}>
          {confirm}
        </button>
      </p>
    </Dialog>
  );
}
