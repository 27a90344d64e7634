import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
const { search } = await import("./dist/search.js");

const found = (words, options) => search(words, options).map((hit) => `${hit.id}:${hit.score}`).join(" ");
assert.equal(found("red"), "B3:1 b2:1 c4:1", "a part of a word is no word");
assert.equal(found("blue red"), "B3:2 c4:2 b2:1");
assert.equal(found("  RED \t blue  red "), "B3:2 c4:2 b2:1", "the same word twice is one word");
assert.equal(found("ÉTUDE"), "a1:1 b2:1");
assert.equal(found("e\u0301tude"), "a1:1 b2:1", "an accent may be a character of its own");
assert.deepEqual([found(""), found("   "), found("nothing"), found("re")], ["", "", "", ""]);
assert.deepEqual([found("red", { limit: 2 }), found("red", { limit: 0 }), found("red", { limit: 9 }), found("red", {})], ["B3:1 b2:1", "", "B3:1 b2:1 c4:1", "B3:1 b2:1 c4:1"]);
for (const limit of [-1, 1.5, NaN, Infinity]) assert.throws(() => search("red", { limit }), RangeError, String(limit));
assert.equal(found(".* red("), "", "words are no patterns");
console.log("PASS");
