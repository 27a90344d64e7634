import { checkAddress } from "./address.mjs";

export function order(input) {
  const error = checkAddress(input.address);
  return error ? { error } : { ok: `order to ${input.address.city}` };
}
