import { STATUSES } from "./statuses.mjs";

const STEPS = { waiting: { start: "running" }, running: { finish: "done" }, done: {} };

/** Return the status behind an event. */
export function next(status, event) {
  const found = STEPS[status]?.[event];
  if (!found) throw new Error(`${STATUSES[status]?.label ?? status} cannot ${event}`);
  return found;
}
