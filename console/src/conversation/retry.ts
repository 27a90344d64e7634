import type { SessionStore } from "../state/store";

/** Send the last prompt of the session that is shown once more. */
export async function retryLast(store: SessionStore): Promise<void> {
  const state = store.current?.state;
  const last = state?.items.findLast((item) => item.type === "user");
  if (!state || state.isRunning || last?.type !== "user") return;
  await store.prompt([...last.blocks]);
}
