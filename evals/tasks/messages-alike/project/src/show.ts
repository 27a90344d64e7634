import { invoice, order } from "./messages.js";

export function show(kind: "order" | "invoice", language: "en" | "fr" | "de", name: string): string {
  const texts = kind === "order" ? order[language] : invoice[language];
  return `${texts.title}\n${texts.done.replace("{name}", name)}`;
}
