import assert from "node:assert/strict";
import { test } from "node:test";
import { copyAll } from "../src/copy.mjs";
import { Memory } from "../src/memory.mjs";

test("values are copied", (context, done) => {
  const to = new Memory();
  copyAll(new Memory({ a: 1 }), to, ["a"], (error, values) => {
    assert.equal(error, null);
    assert.deepEqual([values, to.values], [[1], { a: 1 }]);
    done();
  });
});
