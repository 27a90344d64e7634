// Fuzzy search over commands, files and sessions, by fuzzysort: the letters of the query in their order, words in any
// order, matches at the start of words and of names before the others.

import fuzzysort from "fuzzysort";

export interface Found<T> {
  readonly item: T;
  /** For each text of the item: which of its characters matched. */
  readonly marks: readonly ReadonlySet<number>[];
}

export const MOST_ITEMS = 20_000; // items that are looked at: the first search has to be over in the time of a key

/** The best matches first; all items in their order where the query is empty. `textsOf` gives the same number of texts for
 * each item: what it is called first, then what says more. */
export function search<T>(query: string, items: readonly T[], textsOf: (item: T) => readonly string[], limit = 50): Found<T>[] {
  const looked = items.length > MOST_ITEMS ? items.slice(0, MOST_ITEMS) : items;
  const words = query.trim();
  if (words === "" || looked.length === 0) return looked.slice(0, limit).map((item) => ({ item, marks: [] }));
  const keys = textsOf(looked[0]!).map((_, index) => (item: T) => textsOf(item)[index] ?? "");
  const results = fuzzysort.go(words, looked, { keys, limit, threshold: 0 });
  return results.map((result) => ({
    item: result.obj,
    marks: keys.map((_, index) => new Set(result[index]?.score ? result[index].indexes : [])),
  }));
}
