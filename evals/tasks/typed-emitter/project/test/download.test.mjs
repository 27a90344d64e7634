import assert from "node:assert/strict";
import { test } from "node:test";
import { Download } from "../dist/download.js";

test("it tells of its progress", () => {
  const seen = [];
  const download = new Download();
  download.on("progress", (...values) => seen.push(values));
  download.on("done", (text) => seen.push(text));
  download.run(["ab", "c"], 3);
  assert.deepEqual(seen, [[2, 3], [3, 3], "abc"]);
});
