/** Copy keys from a storage to another, all at the same time. Returns the values in the order of the keys. */
export function copyAll(from, to, keys) {
  return Promise.all(
    keys.map(async (key) => {
      const value = await from.get(key);
      await to.put(key, value);
      return value;
    }),
  );
}
