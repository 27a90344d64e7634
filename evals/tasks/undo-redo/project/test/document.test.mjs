import assert from "node:assert/strict";
import { test } from "node:test";
import { Document } from "../src/document.mjs";

test("text is inserted and removed", () => {
  const document = new Document("ac");
  document.insert(1, "b");
  document.remove(0, 1);
  assert.equal(document.text, "bc");
});
