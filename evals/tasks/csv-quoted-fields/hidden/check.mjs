import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { parse } from "./lib/csv.mjs";

const shown = execFileSync(process.execPath, ["import.mjs", "customers.csv"], { encoding: "utf8" });
assert.deepEqual(shown.trim().split("\n"), [
  "1: Smith, Jane (1 High Street)",
  "2: Ann Lee (Dock 4, Port Road)",
  '3: Bob "the Saw" Hill ()',
]);
assert.deepEqual(parse('a,b\n"",""""\n'), [{ a: "", b: '"' }]);
assert.deepEqual(parse("a,b\r\n1,2\r\n3,4\r\n"), [{ a: "1", b: "2" }, { a: "3", b: "4" }]);
assert.deepEqual(parse("a\n1"), [{ a: "1" }]);
assert.deepEqual(parse("a,b\n"), []);
console.log("PASS");
