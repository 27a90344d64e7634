/** Return the middle of the values, or the mean of the two in the middle. Throws a RangeError if there are none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** Return how much each value is above the one before it. */
export function steps(values: readonly number[]): number[] {
  const found: number[] = [];
  for (let at = 1; at < values.length; at++) found.push(values[at] - values[at - 1]);
  return found;
}
