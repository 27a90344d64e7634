// Going back to before a prompt: a button beside each, what would happen, and one more click.

import { patchView } from "./diff.js";
import { make, visible } from "./dom.js";

const SCOPES = { both: "Files and conversation", files: "Files only", conversation: "Conversation only" };
const DEEDS = { restore: "bring back", delete: "delete", change: "change back" };
const FILES = 200; // files that are listed

/** A panel that asks about a rewind. `ask` sends the request, `done` is called when the session is another,
 *  `closed` when a person is done with it. */
export class RewindPanel {
  constructor(element, { ask, done, closed }) {
    Object.assign(this, { element, ask, done, closed });
  }

  /** Show what going back before this prompt would do. */
  async open(sessionId, messageId) {
    const params = { sessionId, messageId };
    this.turn = params;
    this.show("Rewind", make("p", { class: "faint" }, "Looking at the files …"));
    const shown = await this.answer({ ...params, scope: "both", preview: true });
    if (!shown || this.turn !== params) return;
    const choices = Object.entries(SCOPES).map(([scope, words]) => {
      const button = make("button", { type: "button", class: "choice allow" }, words);
      button.addEventListener("click", () => this.carryOut({ ...params, scope }));
      return button;
    });
    this.show(`Go back to before prompt ${shown.number}?`, this.subject(shown), ...choices, this.closing("Cancel"));
  }

  async carryOut(params) {
    this.show("Rewind", make("p", { class: "faint" }, "Going back …"));
    const done = await this.answer(params);
    if (!done) return;
    const undo = make("button", { type: "button", class: "choice" }, "Undo");
    undo.addEventListener("click", () => this.carryOut({ sessionId: params.sessionId, scope: params.scope, undo: true }));
    this.show(params.undo ? "Undone." : "Done.", this.subject(done), ...(params.undo ? [] : [undo]), this.closing("Close"));
    this.done(params.sessionId);
  }

  async answer(params) {
    try {
      return await this.ask(params);
    } catch (error) {
      this.show("It was not rewound", make("p", { class: "fact" }, visible(error.message)), this.closing("Close"));
      return null;
    }
  }

  subject({ files, prompts, notCovered }) {
    const rows = files.slice(0, FILES).map(({ path, action, trouble, diff }) => {
      const words = trouble ? `left alone: ${trouble}` : DEEDS[action] ?? action;
      const line = make("div", { class: "path" }, `${visible(words)} ${visible(path)}`);
      return diff ? make("details", {}, make("summary", {}, line), patchView(diff, [path])) : line;
    });
    if (files.length > FILES) rows.push(make("p", { class: "fact" }, `and ${files.length - FILES} more files`));
    if (prompts) rows.push(make("p", { class: "fact" }, `${prompts} prompts are taken out of the conversation`));
    for (const sentence of notCovered ?? []) rows.push(make("p", { class: "fact" }, `Note: ${visible(sentence)}`));
    if (!rows.length) rows.push(make("p", { class: "fact" }, "No file is another."));
    return make("div", { class: "subject" }, ...rows);
  }

  closing(words) {
    const button = make("button", { type: "button", class: "choice" }, words);
    button.addEventListener("click", () => {
      this.close();
      this.closed();
    });
    return button;
  }

  show(title, subject, ...choices) {
    const heading = make("h2", {}, title);
    this.element.replaceChildren(heading, subject, make("div", { class: "choices" }, ...choices));
    this.element.hidden = false;
    this.element.querySelector("button:last-of-type")?.focus();
  }

  close() {
    this.turn = null;
    this.element.hidden = true;
  }
}
