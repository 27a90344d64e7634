// Whether something that folds is open: as the state says, until a person says otherwise.

import { useState } from "preact/hooks";

export function useFold(wanted: boolean): { isOpen: boolean; toggle: (event: Event) => void } {
  const [chosen, choose] = useState<boolean | null>(null);
  const isOpen = chosen ?? wanted;
  const toggle = (event: Event) => {
    event.preventDefault(); // the element would change by itself, and be changed back with the next drawing
    choose(!isOpen);
  };
  return { isOpen, toggle };
}
