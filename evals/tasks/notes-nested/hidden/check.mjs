import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import * as modern from "./src/stats.mjs";

const require = createRequire(import.meta.url);
const sort = require("./device/sort.js");
let used = 0;
const before = sort.sorted;
sort.sorted = (values) => { used++; return before(values); };
const old = require("./device/stats.js");
for (const { mean, median } of [modern, old]) {
  const values = [10, 9, 2, 1];
  assert.equal(median(values), 5.5);
  assert.deepEqual(values, [10, 9, 2, 1], "the argument was changed");
  assert.equal(median([3, 100, 20]), 20);
  assert.equal(median([]), null);
  assert.equal(mean([1, 3]), 2);
}
const device = readFileSync("device/stats.js", "utf8");
assert.match(device, /sort(\.js|'|")/, "device/sort.js is not used");
assert.doesNotMatch(device, /\b(const|let|import|export (?:const|function))\b|=>|\.\.\.|\.sort\(|`/);
assert.ok(used > 0 || /sorted/.test(device));
for (const line of device.split("\n")) assert.match(line, /^$|[;{}]$|^\s*(\/\/|\/?\*)/, `no semicolon: ${line}`);
assert.doesNotMatch(readFileSync("src/stats.mjs", "utf8"), /;\s*$|\bvar\b/m);
assert.ok(readdirSync("test").includes("median.test.mjs"));
assert.doesNotMatch(readFileSync("test/median.test.mjs", "utf8"), /;\s*$/m);
assert.equal(readdirSync("device").some((name) => name.includes("test")), false);
console.log("PASS");
