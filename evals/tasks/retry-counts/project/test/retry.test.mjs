import assert from "node:assert/strict";
import { test } from "node:test";
import { withRetry } from "../src/retry.mjs";

const sleep = async () => {};

test("it tries again", async () => {
  let calls = 0;
  const value = await withRetry(async () => {
    if (++calls < 2) throw new Error("not yet");
    return "ok";
  }, { sleep });
  assert.equal(value, "ok");
});

test("it gives up", async () => {
  let calls = 0;
  const action = async () => { calls++; throw new Error("never"); };
  await assert.rejects(withRetry(action, { attempts: 2, sleep }), /never/);
  assert.equal(calls, 2);
});
