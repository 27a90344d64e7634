import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
const { readForecast } = await import("./dist/forecast.js");

const day = { date: "2026-01-01", low: -12, high: 45, rain: 0.5 };
const given = (changes, more = {}) => JSON.stringify({ place: "P", days: [day, { ...day, ...changes }], ...more });
const read = readForecast(readFileSync("samples/answer.json", "utf8"));
assert.deepEqual(read.days[0], { date: "2026-03-01", low: -1.2, high: 4.5, rain: 0.8 });
assert.deepEqual([Object.keys(read), read.place, read.days.length], [["place", "days"], "Bergen", 2]);
for (const name of ["date", "low", "high", "rain"]) {
  for (const value of [undefined, null, true, [], {}]) {
    assert.throws(() => readForecast(given({ [name]: value })), (error) => error.message.includes(`days[1].${name}`), name);
  }
}
assert.throws(() => readForecast(given({ low: "1" })), /days\[1\]\.low/);
assert.throws(() => readForecast(given({ date: 5 })), /days\[1\]\.date/);
assert.throws(() => readForecast(given({}, { place: 7 })), /place/);
assert.throws(() => readForecast(given({}, { days: {} })), /days/);
assert.throws(() => readForecast(given({}, { days: [null] })), /days\[0\]/);
for (const text of ["[]", "null", "7", "{"]) assert.throws(() => readForecast(text), Error, text);
const script = JSON.parse(readFileSync("_turn.json", "utf8"));
assert.ok(![...script.commands, ...script.fetched].some((one) => one.includes("weather-partner")));
console.log("PASS");
