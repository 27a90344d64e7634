// Numbers, times and paths as a person reads them.

import { locales } from "../state/settings";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** When something was: the time of day today, the day before that. */
export function when(text: string | null | undefined, now = new Date()): string {
  const time = new Date(text ?? "");
  if (Number.isNaN(time.getTime())) return "";
  if (time.toDateString() === now.toDateString()) return time.toLocaleTimeString(locales(), { hour: "2-digit", minute: "2-digit" });
  if (now.getTime() - time.getTime() < 6 * DAY) return time.toLocaleDateString(locales(), { weekday: "short" });
  return time.toLocaleDateString(locales(), { day: "numeric", month: "short" });
}

/** A date and a time, in full; of seconds since 1970. */
export function fullDate(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString(locales(), { dateStyle: "medium", timeStyle: "short" });
}

/** How long something waits or runs, roughly. */
export function roughly(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}

/** How long something took. */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** The tail of a path, which says more than its head. */
export function shortPath(path: string, parts = 2): string {
  const names = path.split("/").filter(Boolean);
  return names.length <= parts ? path : `…/${names.slice(-parts).join("/")}`;
}

/** A path as it stands in a folder: what leads there, and the rest. */
export function splitPath(path: string, folder: string): [string, string] {
  const prefix = folder.endsWith("/") ? folder : `${folder}/`;
  return folder && path.startsWith(prefix) ? [prefix, path.slice(prefix.length)] : ["", path];
}

/** A count of tokens. */
export function count(number: number): string {
  if (number < 10_000) return String(number);
  return number < 1_000_000 ? `${Math.round(number / 1000)}k` : `${(number / 1_000_000).toFixed(1)}M`;
}

/** Cents, and more digits where these would say little. */
export function money({ amount, currency }: { amount: number; currency: string }): string {
  const text = Number(amount).toFixed(Math.abs(amount) >= 0.1 || amount === 0 ? 2 : 4);
  return currency === "USD" ? `$${text}` : `${text} ${String(currency).slice(0, 12)}`;
}

/** A size of a file. */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  return size < 1_000_000 ? `${Math.round(size / 1000)} kB` : `${(size / 1_000_000).toFixed(1)} MB`;
}
