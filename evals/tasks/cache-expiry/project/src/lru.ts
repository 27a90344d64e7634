/**
 * A cache of at most `capacity` entries: when there are more, the one that was neither set nor read for longest goes.
 * An entry is gone `ttl` milliseconds after it was set, however often it is read. An entry that is gone is not counted
 * by `size`, and never pushes out one that is still there. Every value can be kept, 0 and "" as well.
 */
export class Lru<K, V> {
  #entries = new Map<K, { value: V; setAt: number }>();

  constructor(
    readonly capacity: number,
    readonly ttl: number,
    readonly now: () => number,
  ) {}

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (!entry?.value) return undefined;
    if (this.now() - entry.setAt > this.ttl) return undefined;
    return entry.value;
  }

  set(key: K, value: V): void {
    this.#entries.set(key, { value, setAt: this.now() });
    if (this.#entries.size > this.capacity) {
      const [oldest] = this.#entries.keys();
      this.#entries.delete(oldest as K);
    }
  }

  get size(): number {
    return this.#entries.size;
  }
}
