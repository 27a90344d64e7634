import assert from "node:assert/strict";
import { Document } from "./src/document.mjs";

const one = new Document("ac");
assert.equal(one.undo(), false);
one.insert(1, "b");
one.remove(0, 1);
assert.equal(one.text, "bc");
assert.deepEqual([one.undo(), one.text, one.undo(), one.text, one.undo()], [true, "abc", true, "ac", false]);
assert.deepEqual([one.redo(), one.text, one.redo(), one.text, one.redo()], [true, "abc", true, "bc", false]);
one.undo();
one.insert(0, "X");
assert.deepEqual([one.text, one.redo()], ["Xabc", false]);
assert.throws(() => one.insert(99, "x"), RangeError);
one.undo();
assert.equal(one.text, "abc", "a change that failed is no step");

const two = new Document("");
two.insert(0, "a");
two.group(() => {
  two.insert(1, "b");
  two.group(() => two.insert(2, "c"));
  two.insert(3, "d");
});
assert.equal(two.text, "abcd");
two.undo();
assert.equal(two.text, "a");
two.redo();
assert.equal(two.text, "abcd");
assert.throws(() => two.group(() => { two.insert(0, "x"); throw new Error("stop"); }), /stop/);
assert.equal(two.text, "abcd");
two.group(() => {});
two.undo();
assert.equal(two.text, "a", "an empty or failed group is no step");

const three = new Document("", { limit: 2 });
for (const letter of "abc") three.insert(0, letter);
assert.deepEqual([three.undo(), three.undo(), three.undo(), three.text], [true, true, false, "a"]);
console.log("PASS");
