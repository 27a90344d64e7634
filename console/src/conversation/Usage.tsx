// What a session has used: how full the window of the model is, tokens, and what it has cost.

import type { SessionState } from "../state/session";
import { harmless } from "../text/visible";
import { count, money } from "../text/words";

export function Usage({ state }: { state: SessionState | null }) {
  const { usage, context } = state ?? { usage: null, context: null };
  const percent = context?.size ? Math.round((100 * (context.used ?? 0)) / context.size) : null;
  const parts = [];
  if (usage) parts.push(`${count(usage.inputTokens)} in, ${count(usage.outputTokens)} out`);
  if (percent !== null) parts.push(`${percent} % of the window`);
  if (context?.cost) parts.push(harmless(money(context.cost)));
  const whole = [
    usage && `${usage.inputTokens} tokens in and ${usage.outputTokens} out in the last turn`,
    context?.size && `${context.used} of ${context.size} tokens of the model's window are used`,
    context?.cost && `the session has cost ${harmless(money(context.cost))}`,
  ].filter(Boolean).join("; ");
  return (
    <span id="usage" class="muted small" title={whole || undefined}>
      {percent !== null && <span class="ring" style={{ "--full": `${Math.min(percent, 100)}%` }} data-full={percent >= 80 ? "high" : ""} aria-hidden="true" />}
      {parts.join(" · ")}
    </span>
  );
}
