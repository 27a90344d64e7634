import assert from "node:assert/strict";
import { test } from "node:test";
import { copyAll } from "../src/copy.mjs";
import { Memory } from "../src/memory.mjs";

test("values are copied", async () => {
  const to = new Memory();
  assert.deepEqual(await copyAll(new Memory({ a: 1 }), to, ["a"]), [1]);
  assert.deepEqual(to.values, { a: 1 });
});
