/** Return the middle of the values, or the mean of the two in the middle. Throws a RangeError if there are none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const half = sorted.length >> 1;
  const upper = sorted[half];
  if (upper === undefined) throw new RangeError("no values");
  const lower = sorted.length % 2 ? upper : (sorted[half - 1] ?? upper);
  return (lower + upper) / 2;
}

/** Return how much each value is above the one before it. */
export function steps(values: readonly number[]): number[] {
  const found: number[] = [];
  let before: number | undefined;
  for (const value of values) {
    if (before !== undefined) found.push(value - before);
    before = value;
  }
  return found;
}
