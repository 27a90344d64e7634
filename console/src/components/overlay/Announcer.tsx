// Reads a text aloud once, by a live region that nothing else changes. For what a person who does not see the screen has
// to learn: a message is complete, a question is asked, a session was deleted.
//
//   <Announcer text={string} isUrgent?={boolean} />

import type { VNode } from "preact";

export interface AnnouncerProps {
  text: string;
  isUrgent?: boolean;
}

export function Announcer({ text, isUrgent = false }: AnnouncerProps): VNode {
  return (
    <div class="sr-only" role={isUrgent ? "alert" : "status"} aria-live={isUrgent ? "assertive" : "polite"}>
      {text}
    </div>
  );
}
