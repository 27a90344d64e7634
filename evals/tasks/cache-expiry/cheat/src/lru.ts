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
    this.set(key, entry.value);
    return entry.value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
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
