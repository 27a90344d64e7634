import assert from "node:assert/strict";
import { test } from "node:test";
import { search } from "../dist/search.js";

test("accents do not count", () => assert.deepEqual(search("etude"), [{ id: "a1", score: 1 }, { id: "b2", score: 1 }]));
test("there is a limit", () => assert.deepEqual(search("red", { limit: 1 }), [{ id: "B3", score: 1 }]));
