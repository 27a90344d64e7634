export async function withRetry(action, { attempts = 3 }) {
  let last;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      return await action(attempt);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}
