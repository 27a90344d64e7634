// What the agent asks of a person, one at a time, in a place of its own: the transcript is a box that nothing in it can
// leave, so whatever the agent says there, it cannot look like this. What is to be judged is shown to the last character.

import { diffView, pathsOf } from "./diff.js";
import { make, visible } from "./dom.js";
import { jsonView } from "./story.js";

// A box that appears under a finger or below a key is not answered by it.
const STILL = 400; // milliseconds
// Fields that hold a path or a text which is written or replaced, as agents name them.
const TEXTS = /^(?:old|new|file|content|text|insert|replace|search)?_?-?(?:string|str|text|contents?|source|path|name|file|patch|diff|with)?$/i;
// Those of them that hold a path: it is told where a diff is of that file, and not where a line mentions it.
const PATHS = /(?:path|file|name)$/i;
// Fields of a call that are shown in their own way, or that are for the transcript.
const KNOWN = new Set(["sessionUpdate", "type", "toolCallId", "title", "kind", "status", "content", "locations", "rawInput",
  "rawOutput", "name", "capabilities", "_meta"]);
const MEANINGS = { allow_once: "yes, once", allow_always: "yes, always", reject_once: "no", reject_always: "no, never" };
const SIGNS = { allow_once: "✓", allow_always: "✓✓", reject_once: "✕", reject_always: "✕✕" };

export class Questions {
  /** `reply(id, result)` sends an answer; `refuse(id)` says that we cannot; `name(sessionId)` is what a person calls it. */
  constructor(box, { reply, refuse, name, call, answered = () => {} }) {
    this.box = box;
    this.reply = reply;
    this.refuse = refuse;
    this.name = name;
    this.call = call;
    this.answered = answered; // nothing is left to answer, and what had the focus is gone
    this.open = new Map();
    this.shown = undefined;
    document.addEventListener("keydown", (event) => this.key(event));
  }

  ask(id, method, params) {
    if (method !== "session/request_permission" && !(method === "elicitation/create" && params.mode === "form")) {
      return this.refuse(id);
    }
    this.open.set(id, { method, params });
    return this.show();
  }

  /** Close a question that another client has answered or the agent has cancelled; null closes every question. */
  withdraw(id) {
    if (id === null) this.open.clear();
    else this.open.delete(id);
    this.show();
  }

  answer(id, result) {
    if (!this.open.delete(id)) return;
    this.reply(id, result);
    this.show();
  }

  show() {
    const next = this.open.entries().next().value;
    if (next === undefined) {
      const focused = document.activeElement;
      const ours = this.shown !== undefined && (focused === null || focused === document.body || this.box.contains(focused));
      this.box.hidden = true;
      this.shown = undefined;
      this.box.replaceChildren();
      if (ours) this.answered();
      return;
    }
    const [id, { method, params }] = next;
    if (this.shown !== id) {
      this.shown = id;
      this.since = performance.now();
      this.box.replaceChildren(...(method === "elicitation/create" ? this.form(id, params) : this.permission(id, params)));
      this.box.hidden = false;
      this.wake();
    }
    const more = this.open.size - 1;
    this.box.querySelector(".more").textContent = more ? `and ${more} more` : "";
  }

  /** Enable the buttons after `STILL`, and focus the box unless the user is writing a prompt. */
  wake() {
    const buttons = [...this.box.querySelectorAll("button")];
    buttons.forEach((button) => { button.disabled = true; });
    setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), STILL);
    const writing = document.activeElement?.tagName === "TEXTAREA" && document.activeElement.value !== "";
    if (!writing) this.box.focus({ preventScroll: true });
  }

  key(event) {
    if (this.box.hidden || !/^Digit[1-9]$/.test(event.code) || event.ctrlKey || event.metaKey) return;
    const typing = ["TEXTAREA", "INPUT", "SELECT"].includes(document.activeElement?.tagName);
    const button = this.box.querySelectorAll("button.choice")[Number(event.code.slice(5)) - 1];
    if (!button || button.disabled || (typing && !event.altKey)) return;
    event.preventDefault();
    button.click();
  }

  head(sessionId, title) {
    const where = this.name(sessionId);
    return make("h2", { id: "question-title" },
      make("span", { class: "who" }, "The agent asks "),
      visible(title),
      where ? make("span", { class: "faint" }, ` in ${visible(where)}`) : null,
      make("span", { class: "faint more" }));
  }

  permission(id, params) {
    const choices = make("div", { class: "choices" });
    const why = make("input", { type: "text", class: "why", maxlength: "2000", "aria-label": "what to do instead",
      placeholder: "With a no: what to do instead" });
    params.options.forEach((option, index) => {
      const effect = String(option.kind).startsWith("allow") ? "allow" : SIGNS[option.kind] ? "reject" : "other";
      const button = make("button", { type: "button", class: `choice ${effect}`, "data-option": option.optionId },
        make("kbd", {}, String(index + 1)), " ",
        make("span", { title: visible(option.name) }, `${SIGNS[option.kind] ?? "?"} ${visible(option.name)}`), " ",
        // The name is the agent's; what the button does is said in our words.
        make("span", { class: "faint meaning" }, `(${MEANINGS[option.kind] ?? "something else"})`));
      button.addEventListener("click", () => {
        const outcome = { outcome: { outcome: "selected", optionId: option.optionId } };
        const feedback = effect === "reject" ? why.value.trim() : "";
        this.answer(id, feedback ? { ...outcome, _meta: { "dragoman/feedback": feedback } } : outcome);
      });
      choices.append(button);
    });
    choices.append(why);
    const description = params.description ? make("p", { class: "plain" }, visible(params.description)) : null;
    return [this.head(params.sessionId, params.title), make("div", { class: "subject" }, description, ...this.subject(params)), choices]
      .filter(Boolean);
  }

  subject({ sessionId, subject }) {
    if (!subject) return [];
    if (subject.type === "command") return [exact(subject.command), fact("in", subject.cwd)];
    if (subject.type !== "tool_call") return [jsonView(subject)];
    // The question may leave out what was said of the call before; what it says itself counts.
    const call = { ...this.call(sessionId, subject.toolCall.toolCallId), ...subject.toolCall };
    const input = call.rawInput;
    const views = [];
    if (call.name) views.push(fact("tool", call.name));
    for (const content of call.content ?? []) {
      if (content.type === "diff") views.push(diffView(content));
      else if (content.content?.type === "text") views.push(exact(content.content.text));
      else views.push(jsonView(content));
    }
    const diffs = (call.content ?? []).filter((content) => content.type === "diff");
    const changed = new Set(diffs.flatMap(pathsOf));
    for (const place of call.locations ?? []) if (!changed.has(place.path)) views.push(fact("path", place.path));
    let rest = untold(input, diffs);
    if (typeof input?.command === "string") {
      views.push(exact(input.command));
      const { command, ...others } = rest;
      rest = others;
    }
    if (rest !== undefined && rest !== null && (typeof rest !== "object" || Object.keys(rest).length)) views.push(jsonView(rest));
    const unknown = Object.entries(subject.toolCall).filter(([name]) => !KNOWN.has(name));
    if (unknown.length) views.push(jsonView(Object.fromEntries(unknown)));
    return views;
  }

  form(id, params) {
    const schema = params.requestedSchema;
    const fields = Object.entries(schema.properties).map(([name, property]) => field(name, property, schema.required ?? []));
    const form = make("form", { class: "subject" }, ...fields.map((one) => one.element));
    const accept = make("button", { class: "choice allow" }, "Answer");
    const decline = make("button", { type: "button", class: "choice reject" }, "Do not answer");
    form.append(make("div", { class: "choices" }, accept, decline));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const content = Object.fromEntries(fields.map((one) => [one.name, one.value()]).filter(([, value]) => value !== undefined));
      this.answer(id, { action: "accept", content });
    });
    decline.addEventListener("click", () => this.answer(id, { action: "decline" }));
    return [this.head(params.sessionId, params.message), form];
  }
}

/** What a tool is given and no diff tells: a path or a text of it need not be read twice, what is run is shown always. */
function untold(input, diffs) {
  if (!diffs.length || typeof input !== "object" || input === null || Array.isArray(input)) return input;
  const paths = diffs.flatMap(pathsOf);
  const patches = diffs.map((diff) => (diff.patch?.text ?? "").split("\n").map((line) => line.slice(1)));
  const lines = new Set(patches.flat());
  const told = ([name, value]) => {
    if (value === null || typeof value === "boolean" || typeof value === "number") return true;
    if (typeof value !== "string" || !TEXTS.test(name)) return false;
    if (PATHS.test(name)) return paths.includes(value);
    return value.split("\n").every((line) => lines.has(line));
  };
  return Object.fromEntries(Object.entries(input).filter((field) => !told(field)));
}

function exact(text) {
  return make("pre", { class: "code exact" }, visible(text));
}

function fact(name, value) {
  return make("p", { class: "fact" }, make("span", { class: "faint" }, `${name} `), make("code", {}, visible(value)));
}

/** One field of a form: its element, and what was filled in. */
function field(name, property, required) {
  const wanted = required.includes(name);
  const choices = property.oneOf?.map((one) => [one.const, one.title]) ?? property.enum?.map((one) => [one, one])
    ?? property.items?.anyOf?.map((one) => [one.const, one.title]) ?? property.items?.enum?.map((one) => [one, one]);
  let input;
  let value;
  if (choices) {
    const several = property.type === "array";
    input = make("select", { multiple: several, required: wanted && !several },
      ...choices.map(([key, title]) => make("option", { value: key, selected: [].concat(property.default ?? []).includes(key) }, visible(title))));
    value = () => (several ? [...input.selectedOptions].map((option) => option.value) : input.value);
  } else if (property.type === "boolean") {
    input = make("input", { type: "checkbox", checked: property.default === true });
    value = () => input.checked;
  } else if (property.type === "number" || property.type === "integer") {
    const step = property.type === "integer" ? "1" : "any";
    input = make("input", { type: "number", step, min: property.minimum, max: property.maximum, value: property.default, required: wanted });
    value = () => (input.value === "" ? undefined : Number(input.value));
  } else {
    input = make("input", { type: "text", maxlength: property.maxLength, value: property.default, required: wanted });
    value = () => (input.value === "" && !wanted ? undefined : input.value);
  }
  return { name, value, element: make("label", { class: "field" }, visible(property.title ?? name), input) };
}
