// What a command writes, decoded piece by piece. Escape sequences stay in the text: what shows it makes colours of them.

const KEPT = 256 * 1024; // characters kept of an output; the oldest are dropped

/** The output of one command. Immutable but for its decoder, which holds the bytes of a character that is not whole. */
export class Output {
  text = "";
  /** The beginning was dropped. */
  isCut = false;
  #decoder = new TextDecoder();

  /** Append the next bytes, as base64; what is none says nothing. */
  append(data: string): void {
    let bytes: Uint8Array;
    try {
      bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    } catch {
      return;
    }
    this.text += this.#decoder.decode(bytes, { stream: true });
    if (this.text.length <= KEPT) return;
    // Cut at a line, or a sequence of colours would begin in its middle.
    const cut = this.text.indexOf("\n", this.text.length - KEPT);
    this.text = this.text.slice(cut < 0 ? -KEPT : cut + 1);
    this.isCut = true;
  }
}
