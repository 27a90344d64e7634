import assert from "node:assert/strict";
import { test } from "node:test";
import { Limiter } from "../src/limiter.mjs";

test("two calls are allowed", () => {
  const limiter = new Limiter({ limit: 2, windowMs: 10, now: () => 0 });
  assert.deepEqual([limiter.allows("a"), limiter.allows("a"), limiter.allows("a")], [true, true, false]);
});

test("later it is allowed again", () => {
  let time = 0;
  const limiter = new Limiter({ limit: 1, windowMs: 10, now: () => time });
  limiter.allows("a");
  time = 10;
  assert.equal(limiter.allows("a"), true);
});
