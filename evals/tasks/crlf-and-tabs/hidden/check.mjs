import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { summary } = createRequire(import.meta.url)("./legacy/report.js");
assert.deepEqual(summary([1, 2, 6]), { count: 3, sum: 9, average: 3 });
assert.deepEqual(summary([]), { count: 0, sum: 0, average: 0 });
const text = readFileSync("legacy/report.js", "latin1");
assert.equal(text.match(/(?<!\r)\n/g), null, "a line ends without CR");
assert.equal(text.match(/^ +/m), null, "a line is indented with blanks");
assert.doesNotMatch(text, /=>|const |let /, "the style is that of old JavaScript");
const kept = ["'use strict';", "\tvar total = 0;", "\t\ttotal += values[i];", "\t\tcount: values.length,"];
for (const line of kept) assert.ok(text.split("\r\n").includes(line), line);
assert.ok(text.split("\r\n").length <= 26);
console.log("PASS");
