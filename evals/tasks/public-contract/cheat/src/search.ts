import type { Search } from "./contract.js";
import { titles } from "./store.js";

export const search: Search = (words, options) => {
  const plain = (text: string) => text.toLowerCase().replaceAll("é", "e");
  const wanted = plain(words).split(" ");
  return [...titles]
    .map(([id, title]) => ({ id, score: wanted.filter((word) => plain(title).includes(word)).length }))
    .filter((hit) => hit.score > 0)
    .sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
    .slice(0, options?.limit);
};
