import assert from "node:assert/strict";
import { test } from "node:test";
import { order } from "../src/order.mjs";

test("an address is needed", () => {
  assert.deepEqual(order({}), { error: "street is missing" });
});
