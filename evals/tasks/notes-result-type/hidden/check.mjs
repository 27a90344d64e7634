import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
import { readdirSync } from "node:fs";
const { parseDuration } = await import("./dist/parseDuration.js");
const { readSchedule } = await import("./dist/readSchedule.js");

const good = { "45s": 45, "10m": 600, "1h30m": 5400, "2d": 172800, "1d1h1m1s": 90061, 90: 90, "0h5s": 5, "1d1s": 86401 };
for (const [text, value] of Object.entries(good)) assert.deepEqual(parseDuration(text), { ok: true, value }, text);
for (const text of ["", "m", "30m1h", "1h1h", "1.5h", "-1s", "1h 5m", "1H", "0", "0s", "1w", "5m3", " 5s", "99999999999999999999s"]) {
  const read = parseDuration(text);
  assert.equal(read.ok, false, text);
  assert.match(read.error, /^[^A-Z].*[^.]$/, text);
}
assert.deepEqual(readSchedule("a every=1h\nb every=60"), { ok: true, value: [{ name: "a", every: 3600 }, { name: "b", every: 60 }] });
assert.deepEqual(readSchedule("a every=1h\nb every=m"), { ok: false, error: "line 2 cannot be read" });

for (const name of readdirSync("src")) {
  const code = readFileSync(`src/${name}`, "utf8").replace(/\/\*[^]*?\*\/|\/\/.*$/gm, "");
  assert.doesNotMatch(code, /\b(throw|catch|enum|class|export default)\b/, name);
  if (name === "result.ts") continue;
  const exported = [...code.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map((one) => one[1]);
  assert.deepEqual(exported, [name.replace(".ts", "")], `${name} exports ${exported}`);
}
const tests = readFileSync("test/parseDuration.test.mjs", "utf8");
assert.ok((tests.match(/\btest\(/g) ?? []).length >= 2 && /false|error/.test(tests));
const next = readFileSync("CHANGES.md", "utf8").split("## ")[1].split("\n").filter((line) => line.startsWith("-"));
assert.ok(next.length >= 2 && /^- (parseDuration|readSchedule): \S/.test(next[0]), next[0]);
assert.equal(next.at(-1), "- readSchedule: comments begin with `#`");
console.log("PASS");
