import { checkRange } from "./ranges.mjs";

export class Document {
  #undo = [];
  #redo = [];
  #depth = 0;
  #limit;

  constructor(text = "", { limit = 100 } = {}) {
    this.text = text;
    this.#limit = limit;
  }

  insert(at, added) {
    checkRange(this.text, at, at);
    this.#change(this.text.slice(0, at) + added + this.text.slice(at));
  }

  remove(from, to) {
    checkRange(this.text, from, to);
    this.#change(this.text.slice(0, from) + this.text.slice(to));
  }

  undo() {
    return this.#move(this.#undo, this.#redo);
  }

  redo() {
    return this.#move(this.#redo, this.#undo);
  }

  group(action) {
    const before = this.text;
    this.#depth++;
    try {
      action();
    } catch (error) {
      this.text = before;
      throw error;
    } finally {
      this.#depth--;
    }
    this.#record(before);
  }

  #change(text) {
    const before = this.text;
    this.text = text;
    this.#record(before);
  }

  #record(before) {
    if (this.#depth > 0 || before === this.text) return;
    this.#undo.push(before);
    if (this.#undo.length > this.#limit) this.#undo.shift();
    this.#redo = [];
  }

  #move(from, to) {
    if (from.length === 0) return false;
    to.push(this.text);
    this.text = from.pop();
    return true;
  }
}
