import { copyAll } from "./copy.mjs";
import { Memory } from "./memory.mjs";

copyAll(new Memory({ a: 1, b: 2 }), new Memory(), process.argv.slice(2)).then(
  (values) => console.log(values.join(" ")),
  (error) => {
    console.error(error.message);
    process.exit(1);
  },
);
