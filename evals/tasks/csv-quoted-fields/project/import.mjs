import { readFileSync } from "node:fs";
import { parse } from "./lib/csv.mjs";

for (const row of parse(readFileSync(process.argv[2], "utf8"))) {
  console.log(`${row.id}: ${row.name} (${row.address.replaceAll("\n", ", ")})`);
}
