// Which grammar colours which language, and how it is loaded. A grammar is a file of its own: it is fetched when a text
// in its language is first seen, and never with the first view.

import type { LanguageFn } from "highlight.js";

type Loader = () => Promise<{ default: LanguageFn }>;

const GRAMMARS: Record<string, Loader> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  elixir: () => import("highlight.js/lib/languages/elixir"),
  go: () => import("highlight.js/lib/languages/go"),
  graphql: () => import("highlight.js/lib/languages/graphql"),
  haskell: () => import("highlight.js/lib/languages/haskell"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  less: () => import("highlight.js/lib/languages/less"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  nix: () => import("highlight.js/lib/languages/nix"),
  objectivec: () => import("highlight.js/lib/languages/objectivec"),
  perl: () => import("highlight.js/lib/languages/perl"),
  php: () => import("highlight.js/lib/languages/php"),
  powershell: () => import("highlight.js/lib/languages/powershell"),
  protobuf: () => import("highlight.js/lib/languages/protobuf"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scala: () => import("highlight.js/lib/languages/scala"),
  scss: () => import("highlight.js/lib/languages/scss"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

// What people, models and file names say for them.
const ALIASES: Record<string, string> = {
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", shellscript: "bash",
  h: "c", hpp: "cpp", cc: "cpp", cxx: "cpp", hh: "cpp", "c++": "cpp", cs: "csharp", "c#": "csharp",
  patch: "diff", docker: "dockerfile", containerfile: "dockerfile", ex: "elixir", exs: "elixir",
  golang: "go", mod: "go", gql: "graphql", hs: "haskell", toml: "ini", cfg: "ini", conf: "ini", properties: "ini",
  js: "javascript", jsx: "javascript", mjs: "javascript", cjs: "javascript", node: "javascript",
  jsonc: "json", json5: "json", jsonl: "json", ipynb: "json", kt: "kotlin", kts: "kotlin", mk: "makefile", make: "makefile",
  md: "markdown", mdx: "markdown", m: "objectivec", mm: "objectivec", pl: "perl", pm: "perl", ps1: "powershell", pwsh: "powershell",
  proto: "protobuf", py: "python", pyi: "python", py3: "python", python3: "python", rb: "ruby", gemfile: "ruby", rakefile: "ruby",
  rs: "rust", sc: "scala", sass: "scss", psql: "sql", sqlite: "sql", ts: "typescript", tsx: "typescript", mts: "typescript", cts: "typescript",
  html: "xml", svg: "xml", xhtml: "xml", vue: "xml", svelte: "xml", plist: "xml", yml: "yaml",
}; // prettier-ignore

/** The name of the grammar for a name of a language, or null. */
export function grammarFor(language: string): string | null {
  const name = language.toLowerCase();
  const grammar = Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name;
  return Object.hasOwn(GRAMMARS, grammar) ? grammar : null;
}

/** The language of a file, by its name; empty where it says none. */
export function languageOf(path: string): string {
  const name = (path.split(/[\\/]/).at(-1) ?? "").toLowerCase();
  const ending = name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : name;
  return grammarFor(ending) ?? (name.startsWith("dockerfile") ? "dockerfile" : "");
}

/** Fetch a grammar. */
export async function loadGrammar(grammar: string): Promise<LanguageFn> {
  return (await GRAMMARS[grammar]!()).default;
}
