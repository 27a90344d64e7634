import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
const { Download } = await import("./dist/download.js");
const { Emitter } = await import("./dist/emitter.js");

const emitter = new Emitter();
const seen = [];
const first = (...values) => { seen.push(["first", ...values]); remove(); };
const remove = emitter.on("a", first);
emitter.on("a", (...values) => seen.push(["second", ...values]));
emitter.on("a", first);
assert.deepEqual([emitter.emit("a", 1), emitter.emit("b")], [3, 0]);
assert.deepEqual(seen, [["first", 1], ["second", 1], ["first", 1]]);
seen.length = 0;
assert.equal(emitter.emit("a", 2), 1, "each removal takes one listener away");
const told = [];
const download = new Download();
for (const name of ["progress", "done", "failed"]) download.on(name, (...values) => told.push([name, ...values]));
const error = new Error("cut");
download.run(["a", error, "b"], 2);
download.run([], 0);
assert.deepEqual(told, [["progress", 1, 2], ["failed", error], ["done", ""]]);
for (const file of ["src/emitter.ts", "src/download.ts"]) {
  const code = readFileSync(file, "utf8");
  assert.doesNotMatch(code.replace(/\/\*[^]*?\*\//g, ""), /\bany\b|unknown as|@ts-/, file);
}
console.log("PASS");
