import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
const { Lru } = await import("./dist/lru.js");
const { names } = await import("./dist/users.js");

let time = 0;
const made = (capacity) => new Lru(capacity, 10, () => time);
const one = made(2);
one.set("zero", 0);
one.set("empty", "");
assert.deepEqual([one.get("zero"), one.get("empty"), one.size], [0, "", 2]);
one.set("zero", 1);
one.set("more", 2);
assert.deepEqual([one.get("zero"), one.get("empty"), one.get("more")], [1, undefined, 2], "set makes it the newest");

time = 0;
const two = made(3);
two.set("a", 1);
time = 9;
assert.equal(two.get("a"), 1);
time = 10;
assert.equal(two.get("a"), undefined, "reading does not prolong");
assert.equal(two.size, 0);

time = 0;
const three = made(2);
three.set("short", 1);
time = 5;
three.set("long", 2);
three.get("short");
time = 12;
three.set("new", 3);
assert.deepEqual([three.get("long"), three.get("new"), three.size], [2, 3, 2], "what is gone takes no place");
assert.deepEqual([names.capacity, names.ttl, readFileSync("src/users.ts", "utf8").includes("Date.now()")], [100, 60000, true]);
console.log("PASS");
