import assert from "node:assert/strict"
import { test } from "node:test"
import { median } from "../src/stats.mjs"

test("median", () => assert.equal(median([10, 9, 1]), 9))
