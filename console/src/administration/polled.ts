// What the server is asked again and again while it is looked at.

import { useEffect, useState } from "preact/hooks";

export interface Polled<T> {
  value: T | null;
  trouble: string;
  /** Ask now. */
  again: () => void;
}

/** Ask at intervals, in milliseconds, while the page is seen; 0: once, and when `again` is called. */
export function usePolled<T>(ask: () => Promise<T>, every: number, key = ""): Polled<T> {
  const [value, setValue] = useState<T | null>(null);
  const [trouble, setTrouble] = useState("");
  const [count, setCount] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      if (!document.hidden) {
        await ask().then(
          (found) => isCurrent && (setValue(found), setTrouble("")),
          (error: Error) => isCurrent && setTrouble(error.message),
        );
      }
      if (isCurrent && every) timer = setTimeout(() => void look(), every);
    };
    void look();
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [count, every, key]);
  return { value, trouble, again: () => setCount((before) => before + 1) };
}
