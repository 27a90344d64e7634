export type Arguments = { flags: Record<string, string>; rest: string[] };

/** Read `--name value` and other words. A flag without a value is an Error, `--name needs a value`. */
export function readArguments(words: readonly string[]): Arguments {
  const read: Arguments = { flags: {}, rest: [] };
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word.startsWith("--")) {
      read.flags[word.slice(2)] = words[at + 1] ?? "";
      at++;
    } else read.rest.push(word);
  }
  return read;
}
