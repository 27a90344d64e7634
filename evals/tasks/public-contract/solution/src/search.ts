import type { Search } from "./contract.js";
import { titles } from "./store.js";

export const search: Search = (words, { limit = Number.MAX_SAFE_INTEGER } = {}) => {
  if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError(`${limit} is no limit`);
  const wanted = new Set(folded(words).split(/\s+/).filter(Boolean));
  return [...titles]
    .map(([id, title]) => {
      const has = new Set(folded(title).match(/[\p{L}\p{N}]+/gu) ?? []);
      return { id, score: [...wanted].filter((word) => has.has(word)).length };
    })
    .filter((hit) => hit.score > 0)
    .sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
    .slice(0, limit);
};

const folded = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
