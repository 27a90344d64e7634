import { readAll } from "./notes.mjs";

console.log(readAll().map((note) => note.title).join("\n"));
