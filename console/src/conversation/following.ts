// Scrolling with a transcript that grows: its end is followed until the user scrolls up, and again from the end on.

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const HAND = 1000; // milliseconds after a movement of the hand in which the transcript may still move because of it
const NEAR = 40; // pixels from the end that count as the end

/** Follow the end of the box `#transcript` in a frame. It is also shown when `jumps` changes, and by `jump`. `session`: whose
 *  transcript it is; another one is another box. */
export function useFollowing(frame: RefObject<HTMLElement | null>, jumps: number, session: string): { isFollowing: boolean; jump: () => void } {
  const find = () => frame.current?.querySelector<HTMLElement>("#transcript") ?? null;
  const follows = useRef(true);
  const stood = useRef(0); // where the box stood last
  const hand = useRef(-Infinity); // when a hand last moved it, or tried to
  const [isFollowing, setFollowing] = useState(true);
  const set = (wanted: boolean) => {
    follows.current = wanted;
    setFollowing(wanted);
  };
  const toEnd = () => {
    const element = find();
    if (!element || !follows.current) return;
    element.scrollTop = element.scrollHeight;
    stood.current = element.scrollTop;
  };
  useLayoutEffect(() => {
    set(true);
    toEnd();
  }, [jumps]);
  useLayoutEffect(toEnd); // after each drawing
  useEffect(() => {
    const element = find();
    if (!element) return undefined;
    // A transcript also moves when it grows or gets the room of a question, so only a movement soon after one of the
    // hand counts as scrolling up.
    const scrolled = () => {
      const byHand = performance.now() - hand.current < HAND;
      if (element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR) set(true);
      else if (byHand && element.scrollTop < stood.current) {
        set(false);
        hand.current = performance.now(); // what was pushed rolls on
      }
      stood.current = element.scrollTop;
    };
    const moved = () => {
      hand.current = performance.now();
    };
    const pressed = (event: PointerEvent) => event.target === element && moved(); // its bar
    const dragged = (event: PointerEvent) => event.buttons && moved();
    const handlers: [string, any][] = [
      ["scroll", scrolled], ["wheel", moved], ["touchmove", moved], ["keydown", moved], ["pointerdown", pressed], ["pointermove", dragged],
    ];
    for (const [name, handler] of handlers) element.addEventListener(name, handler, { passive: true });
    const observer = new ResizeObserver(toEnd); // a question takes some of its room
    observer.observe(element); // and what is in it grows by being measured
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    return () => {
      for (const [name, handler] of handlers) element.removeEventListener(name, handler);
      observer.disconnect();
    };
  }, [session]);
  const jump = () => {
    set(true);
    toEnd();
  };
  return { isFollowing, jump };
}
