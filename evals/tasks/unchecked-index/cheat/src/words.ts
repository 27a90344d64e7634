/** Return what all words begin with; nothing if there are none. */
export function commonStart(words: readonly string[]): string {
  let start = words[0] ?? "";
  for (const word of words) while (!word.startsWith(start)) start = start.slice(0, -1);
  return start;
}

/** Count words by their first letter, in lower case; empty words do not count. */
export function initials(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) {
    const letter = word[0]!.toLowerCase();
    counts[letter] = (counts[letter] ?? 0) + 1;
  }
  return counts;
}
