import { checkAddress } from "./address.mjs";

export function order(input) {
  checkAddress(input.address);
  const address = input.address ?? {};
  if (!address.street?.trim()) return { error: "street is missing" };
  if (!/^\d{5}$/.test(address.zip ?? "")) return { error: "zip has five digits" };
  if (!address.city?.trim()) return { error: "city is missing" };
  if (address.city.length > 40) return { error: "city is too long" };
  return { ok: `order to ${address.city}` };
}
