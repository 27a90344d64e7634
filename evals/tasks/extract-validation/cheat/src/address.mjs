export function checkAddress(address) {
  return null;
}
