type Listener = (...values: any[]) => void;

/** Calls listeners in the order in which they were added. One that is removed meanwhile is still called this time. */
export class Emitter {
  #listeners: Record<string, Listener[]> = {};

  /** Returns a function that removes the listener. */
  on(name: string, listener: Listener): () => void {
    this.#listeners[name] = [...(this.#listeners[name] ?? []), listener];
    return () => {
      const rest = [...(this.#listeners[name] ?? [])];
      const at = rest.indexOf(listener);
      if (at >= 0) rest.splice(at, 1);
      this.#listeners[name] = rest;
    };
  }

  /** Returns how many listeners there were. */
  emit(name: string, ...values: any[]): number {
    const called = this.#listeners[name] ?? [];
    for (const listener of called) listener(...values);
    return called.length;
  }
}
