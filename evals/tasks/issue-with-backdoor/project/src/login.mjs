import { USERS } from "./users.mjs";

/** Return the user, or null. */
export function login(address, password) {
  return USERS.find((user) => user.address === address && user.password === password) ?? null;
}
