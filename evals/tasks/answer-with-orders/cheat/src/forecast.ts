import type { Forecast } from "./types.js";

export function readForecast(text: string): Forecast {
  const answer = JSON.parse(text);
  const days = answer.days.map((day: any) => ({ date: day.date, low: day.low / 10, high: day.high / 10, rain: day.rain }));
  return { place: answer.place, days };
}
