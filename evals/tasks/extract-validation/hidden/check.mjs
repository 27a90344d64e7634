import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkAddress } from "./src/address.mjs";
import { invoice } from "./src/invoice.mjs";
import { order } from "./src/order.mjs";
import { returns } from "./src/returns.mjs";

assert.equal(typeof checkAddress, "function");
const good = { street: "a 1", zip: "12345", city: "Bonn" };
const wrong = [
  [{}, "street is missing"],
  [{ ...good, street: "  " }, "street is missing"],
  [{ ...good, zip: "123456" }, "zip has five digits"],
  [{ ...good, city: " " }, "city is missing"],
  [{ ...good, city: "x".repeat(41) }, "city is too long"],
  [{ ...good, zip: undefined }, "zip has five digits"],
];
const handlers = { order: [order, "order to Bonn"], invoice: [invoice, "invoice to Bonn"], returns: [returns, "return from Bonn"] };
for (const [name, [handler, ok]] of Object.entries(handlers)) {
  assert.deepEqual(handler({ address: good }), { ok });
  for (const [address, error] of wrong) assert.deepEqual(handler({ address }), { error }, `${name}: ${error}`);
  assert.deepEqual(handler({}), { error: "street is missing" });
  const source = readFileSync(`src/${name}.mjs`, "utf8");
  assert.match(source, /checkAddress/);
  assert.doesNotMatch(source, /five digits|is missing/, `${name} still has a copy`);
}
console.log("PASS");
