import assert from "node:assert/strict";
import { test } from "node:test";
import { readSchedule } from "../dist/readSchedule.js";

test("jobs are read", () => {
  assert.deepEqual(readSchedule("# all\nbackup every=60\n"), { ok: true, value: [{ name: "backup", every: 60 }] });
});

test("a line that cannot be read is named", () => {
  assert.deepEqual(readSchedule("a every=1\nb"), { ok: false, error: "line 2 cannot be read" });
});
