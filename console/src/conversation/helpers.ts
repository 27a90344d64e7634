// The calls of helpers, below the call that has started each.

import type { CallItem, Item } from "../state/session";

const NONE: ReadonlyMap<string, CallItem[]> = new Map();

/** The items without the calls of helpers, and these by the key of the call that has started the helper. A call whose
 *  starter is not among the items before it stands for itself. */
export function byHelper(items: readonly Item[]): { own: readonly Item[]; calls: ReadonlyMap<string, readonly CallItem[]> } {
  if (!items.some((item) => starterOf(item) !== undefined)) return { own: items, calls: NONE };
  const own: Item[] = [];
  const calls = new Map<string, CallItem[]>();
  for (const item of items) {
    const below = calls.get(`call ${String(starterOf(item))}`);
    if (below && item.type === "call") below.push(item);
    else own.push(item);
    if (item.type === "call") calls.set(item.key, []);
  }
  return { own, calls };
}

function starterOf(item: Item): unknown {
  return item.type === "call" ? item.call._meta?.["dragoman/helperOf"] : undefined;
}
