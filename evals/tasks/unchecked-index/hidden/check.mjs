import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

const options = JSON.parse(readFileSync("tsconfig.json", "utf8").replace(/^\s*\/\/.*$/gm, "")).compilerOptions;
assert.deepEqual([options.noUncheckedIndexedAccess, options.strict], [true, true]);
rmSync("dist", { recursive: true, force: true });
const tsc = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.check.json"];
execFileSync(process.execPath, tsc, { stdio: "inherit" });
const { readArguments } = await import("./dist/args.js");
const { median, steps } = await import("./dist/numbers.js");
const { commonStart, initials } = await import("./dist/words.js");

assert.throws(() => median([]), RangeError);
assert.deepEqual([median([4]), median([5, 1, 3]), median([1, 2, 3, 10])], [4, 3, 2.5]);
assert.deepEqual([steps([]), steps([7]), steps([0, 0, 5])], [[], [], [0, 5]]);
assert.deepEqual([commonStart([]), commonStart(["a", ""]), commonStart(["same", "same"])], ["", "", "same"]);
assert.deepEqual(initials(["", "a", "A", ""]), { a: 2 });
assert.throws(() => readArguments(["x", "--to"]), { message: "--to needs a value" });
assert.deepEqual(readArguments(["--a", "--b", "c", ""]), { flags: { a: "--b" }, rest: ["c", ""] });
for (const file of ["args", "numbers", "words"]) {
  const code = readFileSync(`src/${file}.ts`, "utf8").replace(/\/\*[^]*?\*\/|\/\/.*$|"(?:\\.|[^"\\])*"/gm, "");
  assert.doesNotMatch(code, /\bany\b|\bas\b(?! const)|@ts-|[\w)\]]!(?![=\w])/, `${file}.ts`);
  assert.doesNotMatch(readFileSync(`src/${file}.ts`, "utf8"), /@ts-/);
}
console.log("PASS");
