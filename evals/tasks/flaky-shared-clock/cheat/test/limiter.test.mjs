import assert from "node:assert/strict";
import { test } from "node:test";
import { Limiter } from "../src/limiter.mjs";

test("it can be made now", () => assert.ok(new Limiter({ limit: 2, windowMs: 10 })));
test("it is not false", () => assert.ok(true));
