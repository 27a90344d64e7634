import assert from "node:assert/strict";
import { test } from "node:test";
import { Limiter } from "../src/limiter.mjs";

test("two calls are allowed", () => {
  const limiter = new Limiter({ limit: 2, windowMs: 10 });
  assert.deepEqual([limiter.allows("a"), limiter.allows("a"), limiter.allows("a")], [true, true, false]);
});

test("later it is allowed again", async () => {
  const limiter = new Limiter({ limit: 2, windowMs: 10 });
  await new Promise((done) => setTimeout(done, 9));
  assert.equal(limiter.allows("a"), true);
});
