export function returns(input) {
  const address = input.address ?? {};
  if (!address.street) return { error: "street is missing" };
  if (!/^\d{5}$/.test(address.zip ?? "")) return { error: "zip has five digits" };
  if (!address.city) return { error: "city is missing" };
  if (address.city.length > 40) return { error: "city is too long" };
  return { ok: `return from ${address.city}` };
}
