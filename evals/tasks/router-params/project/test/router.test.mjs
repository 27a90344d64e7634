import assert from "node:assert/strict";
import { test } from "node:test";
import { Router } from "../src/router.mjs";

test("a path is found by its method", () => {
  const router = new Router();
  router.add("GET", "/about", () => ({ status: 200, body: "us" }));
  assert.equal(router.handle({ method: "GET", path: "/about" }).body, "us");
  assert.equal(router.handle({ method: "POST", path: "/about" }).status, 404);
});
