import { copyAll } from "./copy.mjs";
import { Memory } from "./memory.mjs";

try {
  console.log((await copyAll(new Memory({ a: 1, b: 2 }), new Memory(), process.argv.slice(2))).join(" "));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
