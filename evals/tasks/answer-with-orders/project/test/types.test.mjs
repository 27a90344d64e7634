import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("the sample is JSON", () => assert.equal(JSON.parse(readFileSync("samples/answer.json", "utf8")).place, "Bergen"));
