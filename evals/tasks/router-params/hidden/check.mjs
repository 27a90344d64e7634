import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Router } from "./src/router.mjs";

const router = new Router();
for (const path of ["/files/*rest", "/files/:name", "/files/new", "/users/:id/posts/:post", "/a.b"]) {
  router.add("GET", path, (request, params) => ({ status: 200, body: [path, { ...params }] }));
}
const get = (path) => router.handle({ method: "GET", path });
assert.deepEqual(get("/files/new").body, ["/files/new", {}]);
assert.deepEqual(get("/files/x").body, ["/files/:name", { name: "x" }]);
assert.deepEqual(get("/files/x/y.txt").body, ["/files/*rest", { rest: "x/y.txt" }]);
assert.deepEqual(get("/users/7/posts/a%20b").body[1], { id: "7", post: "a b" });
assert.equal(get("/users/7/posts").status, 404);
assert.equal(get("/users/7/posts/1/2").status, 404);
assert.equal(get("/users//posts/1").status, 404);
assert.equal(get("/axb").status, 404, "a dot is a dot");
assert.equal(get("/users/%zz/posts/1").status, 400);
assert.deepEqual(get("/users/a%2Fb/posts/1").body[1], { id: "a/b", post: "1" });
assert.equal(router.handle({ method: "POST", path: "/files/x" }).status, 404);
assert.match(readFileSync("README.md", "utf8"), /:id|:name|\*rest|param/i);
console.log("PASS");
