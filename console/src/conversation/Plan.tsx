// The plan of the agent: one line above the prompt that opens, since a plan is read once and looked at often.

import { useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import type { SessionState } from "../state/session";
import type { Plan, PlanEntry } from "../state/types";
import { harmless, visible } from "../text/visible";
import { Markdown } from "./rich";

const STEPS = new Set(["pending", "in_progress", "completed", "cancelled"]); // classes of ours, and none that the agent chooses

/** `isAsked`: a question is open, which needs the room. */
export function PlanStrip({ state, isAsked }: { state: SessionState; isAsked: boolean }) {
  const [chosen, choose] = useState<boolean | null>(null);
  const plans = [...state.plans.values()];
  const entries = plans.flatMap((plan) => ("entries" in plan ? plan.entries : []));
  const done = entries.filter((entry) => entry.status === "completed").length;
  const isOver = !state.isRunning && entries.length > 0 && done === entries.length;
  const isOpen = chosen ?? (state.isRunning && !isAsked && !matchMedia("(max-width: 46rem), (max-height: 40rem)").matches);
  const now = entries.find((entry) => entry.status === "in_progress");
  return (
    <details id="plan" open={isOpen} hidden={plans.length === 0 || isOver}>
      <summary onClick={(event) => (event.preventDefault(), choose(!isOpen))}>
        <Icon name="plan" size={16} />
        <span>{entries.length ? `Plan ${done}/${entries.length}` : "Plan"}</span>
        {now && !isOpen && <span class="now ellipsis muted">{harmless(now.content)}</span>}
        {entries.length > 0 && <progress class="bar" value={done} max={entries.length} aria-label="Steps done" />}
      </summary>
      <div id="plan-body">{plans.map((plan) => <PlanView key={plan.planId} plan={plan} />)}</div>
    </details>
  );
}

export function PlanView({ plan }: { plan: Plan }) {
  if (plan.type === "markdown") return <div class="text"><Markdown text={plan.content} isOpen={false} /></div>;
  if (plan.type === "file") return <p>{visible(plan.uri)}</p>;
  return <ol>{(plan.entries ?? []).map((entry, index) => <Step key={index} entry={entry} />)}</ol>;
}

function Step({ entry }: { entry: PlanEntry }) {
  const status = entry.status ?? "";
  return (
    <li class={STEPS.has(status) ? `step ${status}` : "step"} data-status={status}>{harmless(entry.content)}</li>
  );
}
