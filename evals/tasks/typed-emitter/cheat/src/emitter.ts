type Listener = (...values: never[]) => void;

export class Emitter<Events> {
  #listeners: Record<string, Listener[]> = {};

  on(name: keyof Events, listener: Listener): () => void {
    const key = String(name);
    this.#listeners[key] = [...(this.#listeners[key] ?? []), listener];
    return () => {
      this.#listeners[key] = (this.#listeners[key] ?? []).filter((one) => one !== listener);
    };
  }

  emit(name: keyof Events, ...values: unknown[]): number {
    const called = this.#listeners[String(name)] ?? [];
    for (const listener of called) listener(...(values as never[]));
    return called.length;
  }
}
