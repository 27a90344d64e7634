import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
const { balances } = await import("./dist/balances.js");
const { parse } = await import("./dist/parse.js");
const { describe, toCsv } = await import("./dist/text.js");

const events = ["deposit A 500", "transfer A B 250", "withdrawal B 50"].map(parse);
assert.deepEqual(events[1], { kind: "transfer", from: "A", to: "B", cents: 250 });
assert.deepEqual([...balances(events)], [["A", 250], ["B", 200]]);
assert.equal(describe(events[1]), "transfer of 2.50 from A to B");
assert.equal(describe(events[0]), "deposit of 5.00 to A");
assert.equal(toCsv(events), "deposit,A,500\ntransfer,A,-250\ntransfer,B,250\nwithdrawal,B,-50\n");
const wrong = ["transfer A A 1", "transfer A 1", "transfer A B 0", "transfer A B 1.5", "transfer A B 1 2", "transfer A B", "deposit A B 1", "deposit A -1", "steal A B 1", ""];
for (const line of wrong) assert.throws(() => parse(line), Error, line);

const source = readFileSync("src/events.ts", "utf8");
const more = source.replace(/export type LedgerEvent\s*=\s*\|?/, 'export type LedgerEvent = { kind: "zz"; zz: true } | ');
assert.notEqual(more, source);
writeFileSync("src/events.ts", more);
const found = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", ".", "--noEmit"], { encoding: "utf8" });
assert.match(found.stdout, /src\/balances\.ts/, "the compiler does not find what balances forgets");
assert.ok((found.stdout.match(/src\/text\.ts/g) ?? []).length >= 2, "the compiler does not find what text forgets");
console.log("PASS");
