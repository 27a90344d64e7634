// Runs the edit function of gemini-cli over cases: JSON lines in, JSON lines out. The way around it is that of its edit
// tool: line ends are made plain before and put back after, a remark in place of code is refused, and what its error
// function complains of is a refusal. The correction by a model, which needs one, is off, as `disableLLMCorrection` does.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const core = pathToFileURL(process.argv[2]).href;
const { calculateReplacement, getErrorReplaceResult } = await import(`${core}/dist/src/tools/edit.js`);
const { detectOmissionPlaceholders } = await import(`${core}/dist/src/tools/omissionPlaceholderDetector.js`);
const { detectLineEnding } = await import(`${core}/dist/src/utils/textUtils.js`);
// Every question that telemetry asks the configuration has the answer no.
const config = new Proxy({}, { get: () => () => false });

async function edited(file, oldText, newText) {
  const known = new Set(detectOmissionPlaceholders(oldText));
  if (detectOmissionPlaceholders(newText).some((remark) => !known.has(remark))) return null;
  const params = { file_path: "/file", old_string: oldText, new_string: newText, allow_multiple: false };
  const end = detectLineEnding(file);
  const currentContent = file.replace(/\r\n/g, "\n");
  const abortSignal = new AbortController().signal;
  const found = await calculateReplacement(config, { params, currentContent, abortSignal });
  if (getErrorReplaceResult(params, found.occurrences, found.finalOldString, found.finalNewString)) return null;
  return end === "\r\n" ? found.newContent.replace(/\r?\n/g, "\r\n") : found.newContent;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { file, edits } = JSON.parse(line);
  let text = file;
  for (const [oldText, newText] of edits) {
    if (text !== null) text = await edited(text, oldText, newText);
  }
  process.stdout.write(`${JSON.stringify(text)}\n`);
}
process.exit(0);
