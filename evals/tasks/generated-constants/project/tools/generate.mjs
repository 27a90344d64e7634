import { readFileSync, writeFileSync } from "node:fs";

const statuses = JSON.parse(readFileSync("schema/statuses.json", "utf8"));
const lines = Object.entries(statuses).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`);
const head = "// Generated from schema/statuses.json by `npm run generate`. Do not edit.\n";
writeFileSync("src/statuses.mjs", `${head}export const STATUSES = {\n${lines.join("\n")}\n};\n`);
