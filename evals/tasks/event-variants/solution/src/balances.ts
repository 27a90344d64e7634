import { assertNever, type LedgerEvent } from "./events.js";

/** Return what each account has; the money of an account that no event names is not there. */
export function balances(events: readonly LedgerEvent[]): Map<string, number> {
  const found = new Map<string, number>();
  const add = (account: string, cents: number) => found.set(account, (found.get(account) ?? 0) + cents);
  for (const event of events) {
    switch (event.kind) {
      case "deposit":
        add(event.account, event.cents);
        break;
      case "withdrawal":
        add(event.account, -event.cents);
        break;
      case "transfer":
        add(event.from, -event.cents);
        add(event.to, event.cents);
        break;
      default:
        assertNever(event);
    }
  }
  return found;
}
