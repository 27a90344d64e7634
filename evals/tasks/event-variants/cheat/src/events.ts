export type LedgerEvent =
  | { kind: "deposit"; account: string; cents: number }
  | { kind: "withdrawal"; account: string; cents: number }
  | { kind: "transfer"; from: string; to: string; cents: number };

export function assertNever(event: never): never {
  throw new Error(`unknown event ${JSON.stringify(event)}`);
}

export const money = (cents: number): string => (cents / 100).toFixed(2);
