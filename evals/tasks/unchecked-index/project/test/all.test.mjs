import assert from "node:assert/strict";
import { test } from "node:test";
import { readArguments } from "../dist/args.js";
import { median, steps } from "../dist/numbers.js";
import { commonStart, initials } from "../dist/words.js";

test("numbers", () => assert.deepEqual([median([3, 1, 2]), median([1, 2]), steps([1, 4, 2])], [2, 1.5, [3, -2]]));
test("words", () => assert.deepEqual([commonStart(["abc", "abd"]), initials(["One", "other", "x"])], ["ab", { o: 2, x: 1 }]));
test("arguments", () => assert.deepEqual(readArguments(["a", "--to", "b"]), { flags: { to: "b" }, rest: ["a"] }));
