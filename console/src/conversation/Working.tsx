// That the agent works, and for how long: between two words of an answer nothing else moves.

import { useEffect, useState } from "preact/hooks";
import type { SessionState } from "../state/session";

export function Working({ state }: { state: SessionState }) {
  const [, tick] = useState(0);
  const isRunning = state.isRunning;
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  if (!isRunning) return null;
  const seconds = state.turnStartedAt === null ? 0 : Math.floor((Date.now() - state.turnStartedAt) / 1000);
  const what = state.state === "requires_action" ? "Waits for your answer" : "Working";
  return (
    <p class="working muted small">
      <span class="dots" aria-hidden="true"><span /><span /><span /></span> {what}{seconds > 0 ? ` · ${time(seconds)}` : "…"}
    </p>
  );
}

function time(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
