// The storage of the browser, which may be full or forbidden: what cannot be kept is asked again.

export type Place = () => Storage;
/** Of this tab, until it is closed. */
export const ofTab: Place = () => sessionStorage;
/** Of all tabs of this origin. */
export const ofOrigin: Place = () => localStorage;

/** The value under a name, or null where there is none that can be read. */
export function load(place: Place, name: string): any {
  try {
    return JSON.parse(place().getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/** Keep a value; false where there is no room for it. */
export function keep(place: Place, name: string, value: unknown): boolean {
  try {
    place().setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function drop(place: Place, name: string): void {
  try {
    place().removeItem(name);
  } catch {
    // there is none
  }
}
