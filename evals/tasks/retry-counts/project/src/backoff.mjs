/** Milliseconds to wait behind a failed attempt: 100, 200, 400 … at most 5000. */
export function delayFor(attempt) {
  return Math.min(100 * 2 ** (attempt - 1), 5000);
}
