import { checkAddress } from "./address.mjs";

export function returns(input) {
  const error = checkAddress(input.address);
  return error ? { error } : { ok: `return from ${input.address.city}` };
}
