import { assertNever, money, type LedgerEvent } from "./events.js";

export function describe(event: LedgerEvent): string {
  switch (event.kind) {
    case "deposit":
      return `deposit of ${money(event.cents)} to ${event.account}`;
    case "withdrawal":
      return `withdrawal of ${money(event.cents)} from ${event.account}`;
    case "transfer":
      return `transfer of ${money(event.cents)} from ${event.from} to ${event.to}`;
    default:
      return assertNever(event);
  }
}

export function toCsv(events: readonly LedgerEvent[]): string {
  return events.map(lines).join("");
}

function lines(event: LedgerEvent): string {
  switch (event.kind) {
    case "deposit":
      return `deposit,${event.account},${event.cents}\n`;
    case "withdrawal":
      return `withdrawal,${event.account},-${event.cents}\n`;
    case "transfer":
      return `transfer,${event.from},-${event.cents}\ntransfer,${event.to},${event.cents}\n`;
    default:
      return assertNever(event);
  }
}
