import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";

const text = readFileSync("catalog.json");
assert.equal(createHash("sha256").update(text).digest("hex"), "c62159f323b503abfd829e55cea1c31d4008090657e075541e61fdd9b362b3fc");
console.log("PASS");
