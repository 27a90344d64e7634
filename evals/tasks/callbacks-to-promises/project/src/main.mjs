import { copyAll } from "./copy.mjs";
import { Memory } from "./memory.mjs";

const to = new Memory();
copyAll(new Memory({ a: 1, b: 2 }), to, process.argv.slice(2), (error, values) => {
  if (error) {
    console.error(error.message);
    process.exit(1);
  }
  console.log(values.join(" "));
});
