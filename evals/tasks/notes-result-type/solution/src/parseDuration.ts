import { bad, good, type Result } from "./result.js";

/** Read a duration such as `1h30m` or `45` as seconds. */
export function parseDuration(text: string): Result<number> {
  if (/^\d+$/.test(text)) return positive(text, Number(text));
  const found = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text);
  if (text === "" || found === null) return bad(`${JSON.stringify(text)} is no duration`);
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = found.slice(1).map((part) => Number(part ?? 0));
  return positive(text, ((days * 24 + hours) * 60 + minutes) * 60 + seconds);
}

function positive(text: string, seconds: number): Result<number> {
  return Number.isSafeInteger(seconds) && seconds > 0 ? good(seconds) : bad(`${JSON.stringify(text)} is no duration`);
}
