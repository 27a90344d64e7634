import assert from "node:assert/strict";
import { test } from "node:test";
import { tokens } from "../src/tokens.mjs";

test("words and numbers", () => {
  assert.deepEqual(tokens("a 12").map((one) => one.kind), ["word", "number"]);
});

test("an open string", () => {
  assert.throws(() => tokens('a\n"b'), /line 2: string is not closed/);
});
