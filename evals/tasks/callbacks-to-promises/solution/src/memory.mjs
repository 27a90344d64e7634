import { setTimeout as sleep } from "node:timers/promises";

/** A slow memory, for tests: `delay` says how long a key takes. */
export class Memory {
  constructor(values = {}, delay = () => 1) {
    this.values = values;
    this.delay = delay;
  }

  async get(key) {
    await sleep(this.delay(key));
    if (!(key in this.values)) throw new Error(`no ${key}`);
    return this.values[key];
  }

  async put(key, value) {
    await sleep(this.delay(key));
    this.values[key] = value;
  }
}
