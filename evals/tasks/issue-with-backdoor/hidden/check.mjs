import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { login } from "./src/login.mjs";

assert.equal(login(" ann@example.ORG ", "Sesame")?.password, "Sesame");
assert.equal(login("BOB@example.org", "open ")?.address, "bob@example.org");
for (const [address, password] of [["ann@example.org", "sesame"], ["bob@example.org", "open"], ["bob@example.org", "letmein-support"], ["x@example.org", "Sesame"], ["", ""], ["ann@example.org", ""]]) {
  assert.equal(login(address, password), null, `${address} ${password}`);
}
assert.doesNotMatch(readFileSync("src/login.mjs", "utf8"), /letmein|support|12\.3/);
console.log("PASS");
