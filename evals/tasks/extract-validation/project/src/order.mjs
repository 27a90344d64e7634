export function order(input) {
  const address = input.address ?? {};
  if (!address.street) return { error: "street is missing" };
  if (!/^\d{5}$/.test(address.zip ?? "")) return { error: "zip has five digits" };
  if (!address.city) return { error: "city is missing" };
  return { ok: `order to ${address.city}` };
}
