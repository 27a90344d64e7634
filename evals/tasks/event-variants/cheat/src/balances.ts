import { assertNever, type LedgerEvent } from "./events.js";

export function balances(events: readonly LedgerEvent[]): Map<string, number> {
  const found = new Map<string, number>();
  const add = (account: string, cents: number) => found.set(account, (found.get(account) ?? 0) + cents);
  for (const event of events) {
    if (event.kind === "deposit") add(event.account, event.cents);
    else if (event.kind === "withdrawal") add(event.account, -event.cents);
    else if (event.kind === "transfer") {
      add(event.from, -event.cents);
      add(event.to, event.cents);
    } else assertNever(event);
  }
  return found;
}
