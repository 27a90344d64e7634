/** Allows `limit` calls of a key within `windowMs`; a call that is not allowed does not count. */
export class Limiter {
  #calls = new Map();

  constructor({ limit, windowMs, now = () => Date.now() }) {
    this.limit = limit;
    this.windowMs = windowMs;
    this.now = now;
  }

  allows(key) {
    const now = this.now();
    const recent = (this.#calls.get(key) ?? []).filter((time) => now - time < this.windowMs);
    const allowed = recent.length < this.limit;
    if (allowed) recent.push(now);
    this.#calls.set(key, recent);
    return allowed;
  }
}
