import { bad, good, type Result } from "./result.js";

export type Job = { readonly name: string; readonly every: number };

/** Read lines such as `backup every=3600`; empty lines and comments are left out. */
export function readSchedule(text: string): Result<readonly Job[]> {
  const jobs: Job[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const found = /^(\w+) every=(\S+)$/.exec(line);
    const every = Number(found?.[2]);
    if (found === null || !Number.isSafeInteger(every) || every <= 0) return bad(`line ${at + 1} cannot be read`);
    jobs.push({ name: found[1] ?? "", every });
  }
  return good(jobs);
}
