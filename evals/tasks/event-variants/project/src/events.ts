export type LedgerEvent =
  | { kind: "deposit"; account: string; cents: number }
  | { kind: "withdrawal"; account: string; cents: number };

/** The end of every switch over the kinds of events: what comes here was forgotten, which the compiler finds. */
export function assertNever(event: never): never {
  throw new Error(`unknown event ${JSON.stringify(event)}`);
}

export const money = (cents: number): string => (cents / 100).toFixed(2);
