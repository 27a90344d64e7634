import assert from "node:assert/strict";
import { Pager } from "./src/pager.mjs";

const seven = new Pager([1, 2, 3, 4, 5, 6, 7], 3);
assert.equal(seven.pages, 3);
assert.deepEqual(seven.page(3), [7]);
assert.deepEqual(seven.page(9), [7]);
assert.deepEqual(seven.page(1), [1, 2, 3]);
assert.deepEqual(seven.range(2), [4, 6]);
assert.deepEqual(seven.range(3), [7, 7], "the range ends with the list");
const six = new Pager([1, 2, 3, 4, 5, 6], 3);
assert.equal(six.pages, 2);
assert.deepEqual(six.page(2), [4, 5, 6]);
const none = new Pager([], 3);
assert.deepEqual(none.page(1), []);
console.log("PASS");
