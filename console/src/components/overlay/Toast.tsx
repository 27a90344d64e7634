// A short message at the edge with at most one action, such as *Undo*.
//
//   <Toast text={string} action?={{ label, onPick }} onEnd={() => void} seconds?={number} />
//
// `onEnd`: the time is over, or it was closed. The time stands still while the pointer or the focus is on it.

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./overlay.css";

export interface ToastProps {
  text: string;
  onEnd: () => void;
  action?: { label: string; onPick: () => void };
  seconds?: number;
}

export function Toast({ text, onEnd, action, seconds = 10 }: ToastProps): VNode {
  const [isHeld, setHeld] = useState(false);
  const end = useRef(onEnd);
  end.current = onEnd;
  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(() => end.current(), seconds * 1000);
    return () => clearTimeout(timer);
  }, [isHeld, seconds, text]);
  const hold = () => setHeld(true);
  const release = () => setHeld(false);
  return (
    <div class="toast" role="status" onPointerEnter={hold} onPointerLeave={release} onFocusIn={hold} onFocusOut={release}>
      <span>{text}</span>
      {action && (
        <button type="button" class="button" onClick={action.onPick}>
          {action.label}
        </button>
      )}
      <button type="button" class="button quiet icon" aria-label="Close" onClick={onEnd}>
        <span aria-hidden="true">×</span>
      </button>
    </div>
  );
}
