import type { LedgerEvent } from "./events.js";

export function parse(line: string): LedgerEvent {
  const [kind, account, ...rest] = line.split(" ");
  const cents = Number(rest.at(-1));
  if (!account || !Number.isSafeInteger(cents) || cents <= 0) throw new Error(`cannot read ${JSON.stringify(line)}`);
  if (kind === "deposit" || kind === "withdrawal") return { kind, account, cents };
  if (kind === "transfer" && rest[0] !== account) return { kind, from: account, to: rest[0] ?? "", cents };
  throw new Error(`cannot read ${JSON.stringify(line)}`);
}
