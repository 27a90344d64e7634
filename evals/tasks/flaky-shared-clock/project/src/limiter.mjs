const calls = new Map();

/** Allows `limit` calls of a key within `windowMs`; a call that is not allowed does not count. */
export class Limiter {
  constructor({ limit, windowMs }) {
    this.limit = limit;
    this.windowMs = windowMs;
  }

  allows(key) {
    const now = Date.now();
    const recent = (calls.get(key) ?? []).filter((time) => now - time < this.windowMs);
    const allowed = recent.length < this.limit;
    if (allowed) recent.push(now);
    calls.set(key, recent);
    return allowed;
  }
}
