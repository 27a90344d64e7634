import assert from "node:assert/strict"
import { test } from "node:test"
import { mean } from "../src/stats.mjs"

test("mean", () => assert.equal(mean([1, 3]), 2))
