type Listener<Values extends unknown[]> = (...values: Values) => void;
type Listeners<Events extends Record<keyof Events, unknown[]>> = { [Name in keyof Events]?: Listener<Events[Name]>[] };

/** Calls listeners in the order in which they were added. One that is removed meanwhile is still called this time. */
export class Emitter<Events extends Record<keyof Events, unknown[]>> {
  #listeners: Listeners<Events> = {};

  /** Returns a function that removes the listener. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    this.#listeners[name] = [...(this.#listeners[name] ?? []), listener];
    return () => {
      const rest = [...(this.#listeners[name] ?? [])];
      const at = rest.indexOf(listener);
      if (at >= 0) rest.splice(at, 1);
      this.#listeners[name] = rest;
    };
  }

  /** Returns how many listeners there were. */
  emit<Name extends keyof Events>(name: Name, ...values: Events[Name]): number {
    const called = this.#listeners[name] ?? [];
    for (const listener of called) listener(...values);
    return called.length;
  }
}
