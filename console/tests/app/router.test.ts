import { expect, test } from "vitest";
import { href, parseRoute } from "../../src/app/router";

test("an address becomes a screen with its parts, and back", () => {
  const address = href("session", "a/b c");
  expect(address).toBe("#/session/a%2Fb%20c");
  expect(parseRoute(address)).toMatchObject({ screen: "session", parts: ["a/b c"] });
  expect(parseRoute("")).toMatchObject({ screen: "", parts: [] });
  expect(parseRoute("#/inbox?from=push").query.get("from")).toBe("push");
});

test("a link of an earlier version leads to the same session", () => {
  expect(parseRoute("#session=s%2F1")).toMatchObject({ screen: "session", parts: ["s/1"] });
});

test("an address that cannot be decoded is taken as it stands", () => {
  expect(parseRoute("#/session/%ff").parts).toEqual(["%ff"]);
});
