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
    this.#expire();
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: K, value: V): void {
    this.#expire();
    this.#entries.delete(key);
    this.#entries.set(key, { value, setAt: this.now() });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.capacity) break;
      this.#entries.delete(oldest);
    }
  }

  get size(): number {
    this.#expire();
    return this.#entries.size;
  }

  #expire(): void {
    const now = this.now();
    for (const [key, entry] of this.#entries) if (now - entry.setAt >= this.ttl) this.#entries.delete(key);
  }
}
