import { Emitter } from "./emitter.js";

/** Emits `progress` with the bytes that are there and all bytes, then `done` with the text, or `failed` with an Error. */
export class Download extends Emitter {
  run(chunks: Iterable<string | Error>, total: number): void {
    let text = "";
    for (const chunk of chunks) {
      if (chunk instanceof Error) {
        this.emit("failed", chunk);
        return;
      }
      text += chunk;
      this.emit("progress", text.length, total);
    }
    this.emit("done", text);
  }
}
