import { assertNever, money, type LedgerEvent } from "./events.js";

export function describe(event: LedgerEvent): string {
  switch (event.kind) {
    case "deposit":
      return `deposit of ${money(event.cents)} to ${event.account}`;
    case "withdrawal":
      return `withdrawal of ${money(event.cents)} from ${event.account}`;
    default:
      return assertNever(event);
  }
}

export function toCsv(events: readonly LedgerEvent[]): string {
  return events
    .map((event) => `${event.kind},${event.account},${event.kind === "deposit" ? "" : "-"}${event.cents}\n`)
    .join("");
}
