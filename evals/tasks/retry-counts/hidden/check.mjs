import assert from "node:assert/strict";
import { withRetry } from "./src/retry.mjs";

const steps = [];
const sleep = (ms) => new Promise((done) => setImmediate(() => { steps.push(ms); done(); }));
const failing = async (attempt) => { steps.push(`call ${attempt}`); throw new Error(`no ${attempt}`); };
await assert.rejects(withRetry(failing, { attempts: 3, sleep }), /no 3/);
assert.deepEqual(steps, ["call 1", 100, "call 2", 200, "call 3"]);
steps.length = 0;
const fatal = async () => { steps.push("call"); throw Object.assign(new Error("stop"), { fatal: true }); };
await assert.rejects(withRetry(fatal, { sleep }), /stop/);
assert.deepEqual(steps, ["call"]);
assert.equal(await withRetry((attempt) => attempt, { sleep }), 1, "plain functions too");
assert.equal(await withRetry(async (attempt) => { if (attempt < 3) throw new Error("x"); return attempt; }, { sleep }), 3);
console.log("PASS");
