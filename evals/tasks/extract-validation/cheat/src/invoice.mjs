import { order } from "./order.mjs";

export function invoice(input) {
  const found = order(input); // checkAddress
  return found.error ? found : { ok: `invoice to ${input.address.city}` };
}
