// What a command writes, as text: escape sequences are taken out, a carriage return starts its line again.

const KEPT = 64 * 1024; // characters kept of an output; the oldest are dropped
const CARRIED = 4096; // of a sequence that is not over yet
const SEQUENCE = /\u001b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\u001b\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|\u001b[PX^_][^\u001b]{0,4096}\u001b\\|\u001b[ -/]{0,8}[0-OQ-WYZ`-~\\]/g;
const UNFINISHED = /\u001b(?:\[[0-?]{0,64}[ -/]{0,8}|[\]PX^_][^\u0007\u001b]{0,4096}\u001b?|[ -/]{0,8})$/;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

export class Output {
  constructor() {
    this.clear();
  }

  clear() {
    this.text = "";
    this.cut = false;
    this.rest = "";
    this.decoder = new TextDecoder();
  }

  /** The next bytes, as base64; what is none says nothing. */
  feed(data) {
    let bytes;
    try {
      bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    } catch {
      return;
    }
    let text = this.rest + this.decoder.decode(bytes, { stream: true });
    text = text.replace(SEQUENCE, "");
    const unfinished = UNFINISHED.exec(text);
    this.rest = unfinished && unfinished[0].length <= CARRIED ? unfinished[0] : "";
    if (text.endsWith("\r")) this.rest = "\r" + this.rest;
    text = text.slice(0, text.length - this.rest.length).replace(/\r\n/g, "\n").replace(CONTROLS, "");
    for (const [index, piece] of text.split("\r").entries()) {
      if (index > 0) this.text = this.text.slice(0, this.text.lastIndexOf("\n") + 1);
      this.text += piece;
    }
    if (this.text.length > KEPT) {
      this.text = this.text.slice(-KEPT);
      this.cut = true;
    }
  }
}
