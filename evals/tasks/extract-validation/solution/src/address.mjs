/** Return what is wrong with an address; null if nothing is. */
export function checkAddress(address) {
  const { street, zip, city } = address ?? {};
  if (!street?.trim()) return "street is missing";
  if (!/^\d{5}$/.test(zip ?? "")) return "zip has five digits";
  if (!city?.trim()) return "city is missing";
  if (city.length > 40) return "city is too long";
  return null;
}
