// The storage of the browser, which may be full or forbidden: what cannot be kept is asked again.

/** The value under a name, or null where there is none that can be read. */
export function load(storage: () => Storage, name: string): unknown {
  try {
    return JSON.parse(storage().getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/** Keep a value; false where there is no room for it. */
export function keep(storage: () => Storage, name: string, value: unknown): boolean {
  try {
    storage().setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function drop(storage: () => Storage, name: string): void {
  try {
    storage().removeItem(name);
  } catch {
    // there is none
  }
}

/** Of this tab, until it is closed. */
export const tab = () => sessionStorage;
/** Of all tabs of this origin. */
export const origin = () => localStorage;
