// What `/metrics` says, read: the exposition format of Prometheus, as far as our server writes it.

/** The value of each series, by its name and labels as they stand there. */
export type Samples = ReadonlyMap<string, number>;

export function parseMetrics(text: string): Samples {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (!line || line.startsWith("#")) continue;
    const at = line.lastIndexOf(" ");
    const value = Number(line.slice(at + 1));
    if (at > 0 && Number.isFinite(value)) samples.set(line.slice(0, at), value);
  }
  return samples;
}

/** The sum of all series of a name, whatever their labels. */
export function total(samples: Samples, name: string): number {
  let sum = 0;
  for (const [series, value] of samples) if (series === name || series.startsWith(`${name}{`)) sum += value;
  return sum;
}

/** How much a counter has grown in a second, between two looks; null where it began anew. */
export function rate(before: Samples, after: Samples, name: string, seconds: number): number | null {
  const grown = total(after, name) - total(before, name);
  return seconds > 0 && grown >= 0 ? grown / seconds : null;
}

/** The mean of a histogram between two looks; null where nothing was measured. */
export function mean(before: Samples, after: Samples, name: string): number | null {
  const count = total(after, `${name}_count`) - total(before, `${name}_count`);
  const sum = total(after, `${name}_sum`) - total(before, `${name}_sum`);
  return count > 0 && sum >= 0 ? sum / count : null;
}
