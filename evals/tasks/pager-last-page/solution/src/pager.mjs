import { clamp } from "./numbers.mjs";

/** Cut a list into pages. Pages are counted from 1. */
export class Pager {
  constructor(items, size) {
    this.items = items;
    this.size = size;
  }

  get pages() {
    return Math.max(1, Math.ceil(this.items.length / this.size));
  }

  /** The items of a page; a number out of range is the nearest page that there is. */
  page(number) {
    const at = clamp(number, 1, this.pages) - 1;
    return this.items.slice(at * this.size, (at + 1) * this.size);
  }

  /** Where a page is: its first and last item, counted from 1. */
  range(number) {
    const at = clamp(number, 1, this.pages) - 1;
    return [at * this.size + 1, Math.min((at + 1) * this.size, this.items.length)];
  }
}
