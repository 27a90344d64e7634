import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { copyAll } from "./src/copy.mjs";
import { Memory } from "./src/memory.mjs";

assert.equal(await new Memory({ a: 1 }).get("a"), 1);
await assert.rejects(new Memory().get("a"), /no a/);
const keys = Array.from({ length: 10 }, (_, at) => `k${at}`);
const values = Object.fromEntries(keys.map((key, at) => [key, at]));
let reading = 0;
let most = 0;
class Counting extends Memory {
  async get(key) {
    most = Math.max(most, ++reading);
    try {
      return await super.get(key);
    } finally {
      reading--;
    }
  }
}
const to = new Memory();
const copied = await copyAll(new Counting(values, (key) => 20 - 2 * values[key]), to, keys);
assert.deepEqual(copied, keys.map((_, at) => at));
assert.deepEqual(to.values, values);
assert.equal(most, keys.length, "keys are copied at the same time");
assert.deepEqual(await copyAll(new Memory(), to, []), []);
await assert.rejects(copyAll(new Memory({ a: 1 }), to, ["a", "x"]), /no x/);
const run = (...words) => spawnSync(process.execPath, ["src/main.mjs", ...words], { encoding: "utf8" });
assert.deepEqual([run("a", "b").stdout, run("x").stderr.trim(), run("x").status], ["1 2\n", "no x", 1]);
for (const file of ["src/copy.mjs", "src/main.mjs", "src/memory.mjs"]) {
  assert.doesNotMatch(readFileSync(file, "utf8"), /callback/, file);
}
assert.match(readFileSync("test/copy.test.mjs", "utf8"), /await/);
console.log("PASS");
