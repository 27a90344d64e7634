import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDuration } from "../dist/parseDuration.js";

test("durations are read", () => assert.deepEqual(parseDuration("1h30m"), { ok: true, value: 5400 }));
test("what is none is an error", () => assert.equal(parseDuration("30m1h").ok, false));
