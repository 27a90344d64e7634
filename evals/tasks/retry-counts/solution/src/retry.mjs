import { delayFor } from "./backoff.mjs";

/**
 * Call `action(attempt)` until it succeeds, at most `attempts` times; attempts are counted from 1. Between two calls
 * `sleep(delayFor(attempt))` is awaited, with the number of the attempt that failed. An error with `fatal: true` is
 * thrown at once. After the last attempt the last error is thrown, without another wait.
 */
export async function withRetry(action, { attempts = 3, sleep }) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await action(attempt);
    } catch (error) {
      if (error.fatal || attempt >= attempts) throw error;
      await sleep(delayFor(attempt));
    }
  }
}
