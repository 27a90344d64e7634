import { Emitter } from "./emitter.js";

export class Download extends Emitter<{ progress: [number, number]; done: [string]; failed: [Error] }> {
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
