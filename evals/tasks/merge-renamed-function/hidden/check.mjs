import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { markdown } from "./src/export.mjs";
import * as notes from "./src/notes.mjs";

const git = (...words) => execFileSync("git", ["-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", ...words], { encoding: "utf8" }).trim();
assert.equal(markdown(), "# a\n\n1\n\n# b\n\n2\n");
assert.equal(notes.readAll, undefined, "the old name came back");
assert.deepEqual(notes.find("b"), { title: "b", body: "2" });
assert.doesNotMatch(readFileSync("README.md", "utf8"), /readAll/);
assert.match(readFileSync("README.md", "utf8"), /loadNotes/);
assert.equal(git("log", "-1", "--format=%P").split(" ").length, 2, "the last commit is no merge");
assert.equal(git("log", "-1", "--format=%s", "HEAD^2"), "Export notes");
assert.match(git("show", "HEAD:src/export.mjs"), /loadNotes/);
assert.match(git("show", "HEAD:src/export.mjs"), /body/);
console.log("PASS");
