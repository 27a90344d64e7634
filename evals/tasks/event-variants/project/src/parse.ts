import type { LedgerEvent } from "./events.js";

/** Read a line such as `deposit A 250`. Throws an Error for any other line. */
export function parse(line: string): LedgerEvent {
  const [kind, account, amount, ...rest] = line.split(" ");
  const cents = Number(amount);
  if ((kind === "deposit" || kind === "withdrawal") && account && Number.isSafeInteger(cents) && cents > 0 && rest.length === 0) {
    return { kind, account, cents };
  }
  throw new Error(`cannot read ${JSON.stringify(line)}`);
}
