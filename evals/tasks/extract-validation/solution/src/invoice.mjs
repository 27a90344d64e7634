import { checkAddress } from "./address.mjs";

export function invoice(input) {
  const error = checkAddress(input.address);
  return error ? { error } : { ok: `invoice to ${input.address.city}` };
}
