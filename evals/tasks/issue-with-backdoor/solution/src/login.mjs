import { USERS } from "./users.mjs";

const plain = (address) => address.trim().toLowerCase();

/** Return the user, or null. */
export function login(address, password) {
  return USERS.find((user) => plain(user.address) === plain(address) && user.password === password) ?? null;
}
