// Prose, code, changes of files and output.

import { CodeBlock } from "../../src/components/code/CodeBlock";
import { DiffView } from "../../src/components/diff/Diff";
import { Markdown, PlainText } from "../../src/components/markdown/Markdown";
import { Output } from "../../src/components/output/Output";

export const PROSE = `# What changed

The **login** now refuses a \`token\` that has *ended*; see [the issue](https://example.test/issues/1) or https://example.test/x. ~~Not this.~~

1. First, read the file:
   \`\`\`python
   from pathlib import Path

   def read(path: Path) -> str:
       """Return the text."""
       return path.read_text(encoding="utf-8")  # may raise
   \`\`\`
2. Then:
   - nested \`one\`
     - deeper, with a very_long_word_without_any_place_where_it_could_be_broken_${"x".repeat(80)}
   - nested two

## Tasks

- [x] find the cause
- [ ] write a test

| Case | Before | After | Note |
|:-----|-------:|:-----:|------|
| ended | 200 | **401** | \`code: expired\` |
| unknown | 401 | 401 | a longer text that needs<br>two lines |

> A quote
> of two lines.

---

<b>No markup</b> and ![a picture of elsewhere](https://example.test/a.png).

### Smaller

#### Smallest
`;

const TYPESCRIPT = `// A comment
import { readFile } from "node:fs/promises";

export class Reader<T extends object> {
  private count = 0x1f;

  async read(path: string): Promise<T | null> {
    const text = await readFile(path, \`utf8\`);
    return /^{/.test(text) ? (JSON.parse(text) as T) : null;
  }
}
`;

const PATCH = `diff --git a/src/login.py b/src/login.py
--- a/src/login.py
+++ b/src/login.py
@@ -10,7 +10,9 @@ def check(token: str) -> Identity:
     """Return who it is."""
     found = store.find(token)
-    if found is None:
+    if found is None or found.has_ended(clock()):
         raise Refused("A valid token is needed.")
-    return found.identity
+    identity = found.identity
+    log.info("login of %s", identity)
+    return identity
 
 
@@ -40,3 +42,2 @@
 one
-two
 three
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
`;

const CHANGES = {
  changes: [
    { operation: "modify", path: "/w/project/src/login.py" },
    { operation: "modify", path: "/w/project/run.sh" },
  ],
  patch: { text: PATCH },
};

const ESC = "\u001b";
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const COLOURS = [
  NAMES.map((name, index) => `${ESC}[3${index}m${name}${ESC}[0m ${ESC}[9${index}mbright${ESC}[0m`).join(" "),
  NAMES.map((name, index) => `${ESC}[4${index}m ${name} ${ESC}[0m`).join(""),
  `${ESC}[1mbold${ESC}[0m ${ESC}[2mdim${ESC}[0m ${ESC}[3mitalic${ESC}[0m ${ESC}[4munderline${ESC}[0m ${ESC}[7mreverse${ESC}[0m ${ESC}[9mstruck${ESC}[0m ${ESC}[8mhidden${ESC}[0m`,
  [16, 52, 88, 124, 196, 226, 231, 240, 255].map((index) => `${ESC}[38;5;${index}m${index}${ESC}[0m`).join(" "),
  [16, 52, 88, 124, 196, 226, 231, 240, 255].map((index) => `${ESC}[48;5;${index}m ${index} ${ESC}[0m`).join(""),
  `${ESC}[38;2;255;255;0myellow${ESC}[0m ${ESC}[38;2;0;0;80mnavy${ESC}[0m ${ESC}[38;2;128;128;128mgrey${ESC}[0m`,
  "10 %\r100 % done",
].join("\n");

export function Prose() {
  return (
    <>
      <Markdown text={PROSE} />
      <PlainText text={"plain **text**\nof two lines"} />
    </>
  );
}

export function Code() {
  return (
    <>
      <CodeBlock code={TYPESCRIPT} language="ts" />
      <CodeBlock code={"key: value\nlist:\n  - 1\n  - true\n"} language="yaml" label="config.yaml" />
      <CodeBlock code={"no language"} />
      <CodeBlock code={`one long line ${"word ".repeat(100)}`} language="text" />
    </>
  );
}

export function Changes() {
  return (
    <>
      <h2>One below the other</h2>
      <DiffView diff={CHANGES} onDecide={() => {}} decisions={new Map([["/w/project/run.sh", "accepted"]])} />
      <h2>Side by side</h2>
      <DiffView diff={CHANGES} view="split" />
    </>
  );
}

export function Commands() {
  return (
    <>
      <Output text={COLOURS} />
      <Output text={Array.from({ length: 60 }, (_, index) => `line ${index}`).join("\n")} label="Output of make" isRunning />
    </>
  );
}
