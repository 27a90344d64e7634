import assert from "node:assert/strict";
import { test } from "node:test";
import { balances } from "../dist/balances.js";
import { parse } from "../dist/parse.js";
import { describe, toCsv } from "../dist/text.js";

const events = ["deposit A 500", "withdrawal A 120"].map(parse);

test("money is counted", () => assert.deepEqual([...balances(events)], [["A", 380]]));
test("events are described", () => assert.equal(describe(events[1]), "withdrawal of 1.20 from A"));
test("events are exported", () => assert.equal(toCsv(events), "deposit,A,500\nwithdrawal,A,-120\n"));
