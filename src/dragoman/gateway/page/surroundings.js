// What stands around a conversation: its plan, its options, what it has used.

import { find, harmless, make } from "./dom.js";
import { markdown } from "./markdown.js";

const STEPS = new Set(["pending", "in_progress", "completed"]); // a class of ours, and not one that the agent chooses

export function usageText({ usage, context }) {
  const parts = [];
  if (usage) parts.push(`${usage.inputTokens} in, ${usage.outputTokens} out`);
  if (context?.size) parts.push(`${Math.round((100 * context.used) / context.size)} % of the window`);
  if (context?.cost) parts.push(costText(context.cost));
  return parts.join(" · ");
}

/** Cents, and more digits where these would say little. */
export function costText({ amount, currency }) {
  const text = Number(amount).toFixed(Math.abs(amount) >= 0.1 || amount === 0 ? 2 : 4);
  return currency === "USD" ? `$${text}` : `${text} ${harmless(String(currency)).slice(0, 12)}`;
}

export function drawPlan(story) {
  const plans = [...story.plans.values()];
  find("plan").hidden = plans.length === 0;
  const entries = plans.flatMap((plan) => plan.entries ?? []);
  const done = entries.filter((entry) => entry.status === "completed").length;
  find("plan").firstElementChild.textContent = entries.length ? `Plan ${done}/${entries.length}` : "Plan";
  find("plan-body").replaceChildren(...plans.map(planView));
}

function planView(plan) {
  if (plan.type === "markdown") return make("div", { class: "text" }, ...markdown(plan.content));
  if (plan.type === "file") return make("p", {}, plan.uri);
  return make("ol", {}, ...(plan.entries ?? []).map((entry) =>
    make("li", { class: STEPS.has(entry.status) ? `step ${entry.status}` : "step", "data-status": entry.status }, harmless(entry.content))));
}

/** Call `choose(option, value)` with what a person has chosen, and `named()` after that if a name was typed. */
export function drawOptions(story, choose, named) {
  const drawn = JSON.stringify([story.id, story.options]);
  if (find("options").dataset.drawn === drawn) return; // a list that the user has just opened stays open
  find("options").dataset.drawn = drawn;
  const focused = find("options").contains(document.activeElement) ? document.activeElement.dataset.option : undefined;
  find("options").replaceChildren(...story.options.map((option) => optionView(option, choose, named)).filter(Boolean));
  if (focused === undefined) return;
  [...find("options").querySelectorAll("[data-option]")].find((one) => one.dataset.option === focused)?.focus();
}

export function redrawOptions() {
  find("options").dataset.drawn = "";
}

/** The value of the row that asks for a name; no model has an empty one. */
const OTHER = "";

/** A field in the place of the list, for a model that is not in it: Enter takes the name, leaving brings the list back. */
function nameModel(list, option, choose, named) {
  const field = make("input", { placeholder: "provider/name", "aria-label": option.name, "data-named": option.configId });
  const restore = () => { list.value = option.currentValue; field.replaceWith(list); };
  field.addEventListener("blur", restore);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    const name = field.value.trim();
    field.blur();
    if (event.key === "Enter" && name) {
      choose(option, { type: "id", value: name });
      named();
    } else list.focus();
  });
  list.replaceWith(field);
  field.focus();
}

function optionView(option, choose, named) {
  let input;
  if (option.type === "boolean") {
    input = make("input", { type: "checkbox", checked: option.currentValue, "data-option": option.configId });
    input.addEventListener("change", () => choose(option, { type: "boolean", value: input.checked }));
  } else if (option.type === "select") {
    const row = (one) => make("option", { value: one.value, title: one.description, selected: one.value === option.currentValue }, one.name);
    input = make("select", { title: option.description, "data-option": option.configId }, ...option.options.map((one) =>
      one.options ? make("optgroup", { label: one.name }, ...one.options.map(row)) : row(one)));
    if (option.category === "model") input.append(make("option", { value: OTHER }, "Another…"));
    input.addEventListener("change", () => {
      if (input.value === OTHER) nameModel(input, option, choose, named);
      else choose(option, { type: "id", value: input.value });
    });
  } else return null;
  return make("label", {}, make("span", {}, option.name), input);
}
