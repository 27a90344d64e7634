// What was done last, with a way back for some seconds. What cannot be taken back is done when they are over: not before,
// and also when the screen is left; not where the page is closed before that.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Toast } from "../components/overlay/Toast";

export interface Undoable {
  text: string;
  undo: () => void;
  /** Do it, now that it is not undone any more. */
  commit?: () => void;
}

export function Undo({ undoable, end }: { undoable: Undoable | null; end: () => void }) {
  const open = useRef<Undoable | null>(null);
  useEffect(() => {
    // Another one takes its place: the one before is settled.
    if (open.current && open.current !== undoable) open.current.commit?.();
    open.current = undoable;
  }, [undoable]);
  useLayoutEffect(() => () => open.current?.commit?.(), []);
  if (!undoable) return null;
  const settle = (step: "undo" | "commit") => {
    open.current = null;
    end();
    undoable[step]?.();
  };
  return <Toast key={undoable.text} text={undoable.text} onEnd={() => settle("commit")} action={{ label: "Undo", onPick: () => settle("undo") }} />;
}
