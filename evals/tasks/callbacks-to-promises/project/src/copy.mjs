/** Copy keys from a storage to another, all at the same time; the callback gets the values in the order of the keys. */
export function copyAll(from, to, keys, callback) {
  const values = [];
  let open = keys.length;
  let failed = false;
  if (open === 0) return callback(null, []);
  keys.forEach((key, at) => {
    const done = (error, value) => {
      if (failed) return;
      if (error) {
        failed = true;
        return callback(error);
      }
      values[at] = value;
      if (--open === 0) callback(null, values);
    };
    from.get(key, (error, value) => {
      if (error) return done(error);
      to.put(key, value, (problem) => done(problem, value));
    });
  });
}
