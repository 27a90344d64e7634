// Whether something that folds is open: as the state says, until a person says otherwise. What was said outlives that the
// thing is scrolled out of the view, where it is not in the page.

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";

/** What a person has opened or folded, by key. */
export const Folds = createContext<Map<string, boolean> | null>(null);

export function useFold(key: string, wanted: boolean): { isOpen: boolean; toggle: (event: Event) => void } {
  const folds = useContext(Folds);
  const [chosen, choose] = useState<boolean | null>(folds?.get(key) ?? null);
  const isOpen = chosen ?? wanted;
  const toggle = (event: Event) => {
    event.preventDefault(); // the element would change by itself, and be changed back with the next drawing
    folds?.set(key, !isOpen);
    choose(!isOpen);
  };
  return { isOpen, toggle };
}
