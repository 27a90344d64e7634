export type Arguments = { flags: Record<string, string>; rest: string[] };

/** Read `--name value` and other words. A flag without a value is an Error, `--name needs a value`. */
export function readArguments(words: readonly string[]): Arguments {
  const read: Arguments = { flags: {}, rest: [] };
  let flag: string | undefined;
  for (const word of words) {
    if (flag !== undefined) {
      read.flags[flag] = word;
      flag = undefined;
    } else if (word.startsWith("--")) flag = word.slice(2);
    else read.rest.push(word);
  }
  if (flag !== undefined) throw new Error(`--${flag} needs a value`);
  return read;
}
