import { Download } from "./download.js";
import { Emitter } from "./emitter.js";

interface Named {
  open: [];
  move: [number, string];
}

const emitter = new Emitter<{ progress: [number, number]; done: [] }>();
emitter.on("progress", (have, all) => have.toFixed() + all.toFixed());
emitter.on("progress", (have: number) => have);
const stop: () => void = emitter.on("done", () => {});
const count: number = emitter.emit("progress", 1, 2);
emitter.emit("done");
stop();
new Emitter<Named>().on("move", (at, name) => at.toFixed() + name.trim());
// @ts-expect-error
emitter.on("other", () => {});
// @ts-expect-error
emitter.on("progress", (have: string) => have);
// @ts-expect-error
emitter.on("done", (more: number) => more);
// @ts-expect-error
emitter.emit("progress", 1);
// @ts-expect-error
emitter.emit("progress", 1, "2");
// @ts-expect-error
emitter.emit("done", count);
// @ts-expect-error
emitter.emit("other");
const download = new Download();
download.on("failed", (error) => error.message.trim());
download.on("done", (text) => text.trim());
// @ts-expect-error
download.on("done", (text) => text.toFixed());
// @ts-expect-error
download.on("progres", () => {});
