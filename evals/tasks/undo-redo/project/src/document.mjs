import { checkRange } from "./ranges.mjs";

export class Document {
  constructor(text = "") {
    this.text = text;
  }

  insert(at, added) {
    checkRange(this.text, at, at);
    this.text = this.text.slice(0, at) + added + this.text.slice(at);
  }

  remove(from, to) {
    checkRange(this.text, from, to);
    this.text = this.text.slice(0, from) + this.text.slice(to);
  }
}
