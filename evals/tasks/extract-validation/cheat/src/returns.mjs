import { order } from "./order.mjs";

export function returns(input) {
  const found = order(input); // checkAddress
  return found.error ? found : { ok: `return from ${input.address.city}` };
}
