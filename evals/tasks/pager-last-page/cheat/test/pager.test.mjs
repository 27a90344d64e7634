import assert from "node:assert/strict";
import { test } from "node:test";
import { Pager } from "../src/pager.mjs";

test("the last page may be shorter", () => {
  const pager = new Pager([1, 2, 3, 4, 5, 6, 7], 3);
  assert.equal(pager.pages, 2);
});
