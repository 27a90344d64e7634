import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { next } from "./src/jobs.mjs";
import { STATUSES } from "./src/statuses.mjs";

assert.deepEqual(STATUSES.paused, { code: 4, label: "Paused" });
assert.equal(next("running", "pause"), "paused");
assert.equal(next("paused", "resume"), "running");
assert.equal(next("running", "finish"), "done");
assert.throws(() => next("paused", "finish"), /Paused cannot finish/);
const before = readFileSync("src/statuses.mjs", "utf8");
execFileSync(process.execPath, ["tools/generate.mjs"]);
assert.equal(readFileSync("src/statuses.mjs", "utf8"), before, "it is not what the schema gives");
console.log("PASS");
