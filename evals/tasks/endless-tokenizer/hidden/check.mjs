import assert from "node:assert/strict";
import { tokens } from "./src/tokens.mjs";

setTimeout(() => process.exit(9), 8000).unref();
const kinds = (text) => tokens(text).map((one) => `${one.kind}:${one.text}@${one.line}`).join(" ");
assert.equal(kinds('x="a b"+1'), "word:x@1 sign:=@1 string:a b@1 sign:+@1 number:1@1");
assert.equal(kinds('""'), "string:@1");
assert.equal(kinds('"a\nb" c'), "string:a\nb@1 word:c@2", "lines inside of a string count");
assert.equal(kinds("a +-"), "word:a@1 sign:+-@1");
assert.throws(() => tokens('a\n"b'), { message: "line 2: string is not closed" });
assert.throws(() => tokens('"'), { message: "line 1: string is not closed" });
assert.throws(() => tokens('"a\n\nb'), { message: "line 1: string is not closed" });
assert.throws(() => tokens("a ? b"), Error, "what is no token must not hang");
assert.throws(() => tokens("é"), Error);
console.log("PASS");
