export function invoice(input) {
  const address = input.address ?? {};
  if (!address.street?.trim()) return { error: "street is missing" };
  if (!/^\d{5}/.test(address.zip ?? "")) return { error: "zip has five digits" };
  if (!address.city?.trim()) return { error: "city is missing" };
  return { ok: `invoice to ${address.city}` };
}
