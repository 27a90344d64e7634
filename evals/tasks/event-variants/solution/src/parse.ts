import type { LedgerEvent } from "./events.js";

/** Read a line such as `deposit A 250` or `transfer A B 250`. Throws an Error for any other line. */
export function parse(line: string): LedgerEvent {
  const [kind, ...words] = line.split(" ");
  const cents = Number(words.at(-1));
  const accounts = words.slice(0, -1);
  const [one, other] = accounts;
  if (accounts.every(Boolean) && one && Number.isSafeInteger(cents) && cents > 0) {
    if ((kind === "deposit" || kind === "withdrawal") && accounts.length === 1) return { kind, account: one, cents };
    if (kind === "transfer" && accounts.length === 2 && other && other !== one) return { kind, from: one, to: other, cents };
  }
  throw new Error(`cannot read ${JSON.stringify(line)}`);
}
