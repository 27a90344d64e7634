import type { Search } from "./contract.js";
import { titles } from "./store.js";

export const search: Search = (words) => {
  const wanted = words.split(" ");
  return [...titles]
    .map(([id, title]) => ({ id, score: wanted.filter((word) => title.includes(word)).length }))
    .filter((hit) => hit.score > 0)
    .sort((one, other) => other.score - one.score);
};
