import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
import { createHash } from "node:crypto";
const { order, invoice } = await import("./dist/messages.js");
const { show } = await import("./dist/show.js");

assert.equal(order.fr.title, "Votre réservation");
assert.equal(order.fr.ask, "Annuler la réservation\u00a0?");
assert.equal(order.fr.done, "La réservation «\u00a0{name}\u00a0» est annulée\u00a0!");
assert.equal(order.fr.late, "La réservation ne peut plus être annulée\u00a0: elle est en route.");
assert.equal(invoice.fr.ask, "Annuler la commande\u00a0?");
assert.equal(show("invoice", "fr", "x"), "Facture de votre commande\nLa commande «\u00a0x\u00a0» est annulée\u00a0!");
const before = readFileSync("src/messages.ts", "utf8").replaceAll("réservation", "commande");
assert.equal(createHash("sha256").update(before).digest("hex"), "ed49b3735905910a3f67e99004bd09581271465f6c250fa6521bc8e541a168b8", "something else was changed");
console.log("PASS");
