import assert from "node:assert/strict";
import { test } from "node:test";
import { Lru } from "../dist/lru.js";

test("what was read last stays", () => {
  const cache = new Lru(2, 1000, () => 0);
  cache.set("a", 1);
  cache.set("b", 2);
  cache.get("a");
  cache.set("c", 3);
  assert.deepEqual([cache.get("a"), cache.get("b"), cache.get("c")], [1, undefined, 3]);
});
