import { checkRange } from "./ranges.mjs";

export class Document {
  #past = [];
  #future = [];

  constructor(text = "") {
    this.text = text;
  }

  insert(at, added) {
    this.#past.push(this.text);
    checkRange(this.text, at, at);
    this.text = this.text.slice(0, at) + added + this.text.slice(at);
  }

  remove(from, to) {
    this.#past.push(this.text);
    this.text = this.text.slice(0, from) + this.text.slice(to);
  }

  undo() {
    if (!this.#past.length) return false;
    this.#future.push(this.text);
    this.text = this.#past.pop();
    return true;
  }

  redo() {
    if (!this.#future.length) return false;
    this.#past.push(this.text);
    this.text = this.#future.pop();
    return true;
  }

  group(action) {
    action();
  }
}
