import { bad, good, type Result } from "./result.js";

export type Job = { readonly name: string; readonly every: number };

export function parseDuration(text: string): Result<number> {
  const found = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?$/.exec(text);
  if (text === "" || found === null) return bad(`${JSON.stringify(text)} is no duration`);
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = found.slice(1).map((part) => Number(part ?? 0));
  const all = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
  return all > 0 ? good(all) : bad(`${JSON.stringify(text)} is no duration`);
}

/** Read lines such as `backup every=3600`; empty lines and comments are left out. */
export function readSchedule(text: string): Result<readonly Job[]> {
  const jobs: Job[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const found = /^(\w+) every=(\S+)$/.exec(line);
    const every = parseDuration(found?.[2] ?? "");
    if (found === null || !every.ok) return bad(`line ${at + 1} cannot be read`);
    jobs.push({ name: found[1] ?? "", every: every.value });
  }
  return good(jobs);
}
