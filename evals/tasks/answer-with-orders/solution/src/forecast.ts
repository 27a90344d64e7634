import type { Day, Forecast } from "./types.js";

/** Read what the weather server answers. Throws an Error that names the field which is missing or of another type. */
export function readForecast(text: string): Forecast {
  const answer = fields(JSON.parse(text), "the answer");
  if (!Array.isArray(answer["days"])) throw new Error("days is no list");
  return { place: word(answer["place"], "place"), days: answer["days"].map((day, at) => readDay(day, `days[${at}]`)) };
}

function readDay(value: unknown, name: string): Day {
  const day = fields(value, name);
  return {
    date: word(day["date"], `${name}.date`),
    low: amount(day["low"], `${name}.low`) / 10,
    high: amount(day["high"], `${name}.high`) / 10,
    rain: amount(day["rain"], `${name}.rain`),
  };
}

function fields(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${name} is no object`);
  return { ...value };
}

function word(value: unknown, name: string): string {
  if (typeof value !== "string") throw new Error(`${name} is no text`);
  return value;
}

function amount(value: unknown, name: string): number {
  if (typeof value !== "number") throw new Error(`${name} is no number`);
  return value;
}
