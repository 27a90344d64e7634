const calls = new Map();

export class Limiter {
  constructor({ limit, windowMs, now = Date.now }) {
    this.limit = limit;
    this.windowMs = windowMs;
    this.now = now;
  }

  allows(key) {
    const now = this.now();
    const recent = (calls.get(key) ?? []).filter((time) => now - time < this.windowMs);
    const allowed = recent.length < this.limit;
    if (allowed) recent.push(now);
    calls.set(key, recent);
    return allowed;
  }
}
