export async function copyAll(from, to, keys) {
  const values = [];
  for (const key of keys) {
    values.push(await from.get(key));
    await to.put(key, values.at(-1));
  }
  return values;
}
