// May the agent do this? The facts first, then the answers: a key each, and words for a no.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { DiffContent, PermissionOption, PermissionRequest, ToolCall } from "../state/types";
import { visible } from "../text/visible";
import { JsonView } from "./Content";
import { DiffView, PathIn, pathsOf } from "./rich";

// Fields that hold a path or a text which is written or replaced, as agents name them.
const TEXTS = /^(?:old|new|file|content|text|insert|replace|search)?_?-?(?:string|str|text|contents?|source|path|name|file|patch|diff|with)?$/i;
// Those of them that hold a path: it is told where a diff is of that file, and not where a line mentions it.
const PATHS = /(?:path|file|name)$/i;
// Those of them that hold a text which is replaced, or what replaces it: it may be a part of a line.
const REPLACED = /^(?:old|new)_?(?:string|str|text)$/i;
// Fields of a call that are shown in their own way, or that are for the transcript.
const KNOWN = new Set(["sessionUpdate", "type", "toolCallId", "title", "kind", "status", "content", "locations", "rawInput",
  "rawOutput", "name", "capabilities", "_meta"]);
const MEANINGS: Record<string, string> = { allow_once: "yes, once", allow_always: "yes, always", reject_once: "no", reject_always: "no, never" };
const SIGNS: Record<string, string> = { allow_once: "✓", allow_always: "✓✓", reject_once: "✕", reject_always: "✕✕" };
const WORDS = 2000; // characters of what to do instead

interface Props {
  params: PermissionRequest;
  /** What was said of a call before. */
  call: (callId: string) => ToolCall | undefined;
  cwd: string;
  isAwake: boolean;
  reply: (result: unknown) => void;
  /** What stands above the facts, inside of what is scrolled. */
  before?: ComponentChildren;
  /** Digits answer; not where several questions are shown at once. */
  hasKeys?: boolean;
}

export function Permission({ params, call, cwd, isAwake, reply, before, hasKeys = true }: Props) {
  const why = useRef<HTMLInputElement>(null);
  const choose = (option: PermissionOption) => {
    const outcome = { outcome: { outcome: "selected", optionId: option.optionId } };
    const feedback = effectOf(option.kind) === "reject" ? why.current?.value.trim() : "";
    reply(feedback ? { ...outcome, _meta: { "dragoman/feedback": feedback } } : outcome);
  };
  const choices = useRef<HTMLDivElement>(null);
  useDigits(params.options, isAwake && hasKeys, choose, choices);
  const no = params.options.find((option) => effectOf(option.kind) === "reject");
  return (
    <>
      <div class="subject" tabIndex={0} role="group" aria-label="What it is about">
        {before}
        {params.description && <p class="plain">{visible(params.description)}</p>}
        <Subject params={params} call={call} cwd={cwd} />
      </div>
      <div class="choices" ref={choices}>
        {params.options.map((option, index) => (
          <button type="button" key={option.optionId} class={`button choice ${effectOf(option.kind)}`} data-option={option.optionId} data-kind={option.kind}
            disabled={!isAwake} onClick={() => choose(option)}>
            {hasKeys && <><kbd>{index + 1}</kbd>{" "}</>}
            <span>{SIGNS[option.kind] ?? "?"} <WithCode text={visible(option.name)} /></span>{" "}
            {/* The name is the agent's; what the button does is said in our words. */}
            <span class="muted meaning">({MEANINGS[option.kind] ?? "something else"})</span>
          </button>
        ))}
        {no && (
          <input ref={why} type="text" class="why" maxLength={WORDS} aria-label="No, because: what to do instead"
            placeholder="No, because …" onKeyDown={(event) => {
              if (event.key !== "Enter" || !why.current!.value.trim() || !isAwake) return;
              event.preventDefault();
              choose(no);
            }} />
        )}
      </div>
    </>
  );
}

/** The digits answer while no text is typed; with Alt always. Only what is seen: another screen may stand before it. */
function useDigits(
  options: PermissionOption[],
  isAwake: boolean,
  choose: (option: PermissionOption) => void,
  choices: { current: HTMLElement | null },
) {
  // Before the browser draws: a button that can be clicked has its key.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!choices.current?.checkVisibility()) return;
      if (!isAwake || !/^Digit[1-9]$/.test(event.code) || event.ctrlKey || event.metaKey) return;
      const isTyping = ["TEXTAREA", "INPUT", "SELECT"].includes(document.activeElement?.tagName ?? "");
      const option = options[Number(event.code.slice(5)) - 1];
      if (!option || (isTyping && !event.altKey)) return;
      event.preventDefault();
      choose(option);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });
}

function effectOf(kind: string): "allow" | "reject" | "other" {
  return String(kind).startsWith("allow") ? "allow" : SIGNS[kind] ? "reject" : "other";
}

function Subject({ params: { subject }, call, cwd }: Pick<Props, "params" | "call" | "cwd">) {
  if (!subject) return null;
  if (subject.type === "command") return <><Exact text={subject.command} /><Fact name="in">{visible(subject.cwd)}</Fact></>;
  if (subject.type !== "tool_call") return <JsonView value={subject} />;
  const said: ToolCall & Record<string, unknown> = subject.toolCall;
  // The question may leave out what was said of the call before; what it says itself counts.
  return <CallFacts call={{ ...call(said.toolCallId), ...said }} said={said} cwd={cwd} />;
}

function CallFacts({ call, said, cwd }: { call: ToolCall; said: Record<string, unknown>; cwd: string }) {
  const diffs = (call.content ?? []).filter((content): content is DiffContent => content.type === "diff");
  const changed = new Set(diffs.flatMap(pathsOf));
  const input = call.rawInput as Record<string, unknown> | undefined | null;
  const command = typeof input === "object" && typeof input?.command === "string" ? input.command : undefined;
  let rest = untold(input, diffs, cwd);
  if (command !== undefined) {
    const { command: _, ...others } = rest as Record<string, unknown>;
    rest = others;
  }
  const hasRest = rest !== undefined && rest !== null && (typeof rest !== "object" || Object.keys(rest).length > 0);
  const unknown = Object.entries(said).filter(([name]) => !KNOWN.has(name));
  return (
    <>
      {call.name && <Fact name="tool">{visible(call.name)}</Fact>}
      {(call.content ?? []).map((content, index) =>
        content.type === "diff" ? <DiffView key={index} diff={content} />
          : content.type === "content" && content.content?.type === "text" ? <Exact key={index} text={content.content.text} />
          : <JsonView key={index} value={content} />,
      )}
      {(call.locations ?? []).filter(({ path }) => !changed.has(path)).map(({ path }) => (
        <Fact name="path" key={path}><PathIn path={path} cwd={cwd} /></Fact>
      ))}
      {command !== undefined && <Exact text={command} />}
      {hasRest && <JsonView value={rest} />}
      {unknown.length > 0 && <JsonView value={Object.fromEntries(unknown)} />}
    </>
  );
}

/** What a tool is given and no diff tells: a path or a text of it need not be read twice, what is run is shown always. */
export function untold(input: unknown, diffs: DiffContent[], cwd: string): unknown {
  if (!diffs.length || typeof input !== "object" || input === null || Array.isArray(input)) return input;
  const paths = diffs.flatMap(pathsOf);
  const patches = diffs.flatMap((diff) => (diff.patch?.text ?? "").split("\n"));
  const lines = new Set(patches.map((line) => line.slice(1)));
  const changed = patches.filter((line) => /^[+-]/.test(line)).map((line) => line.slice(1));
  const isTold = ([name, value]: [string, unknown]) => {
    if (value === null || typeof value === "boolean" || typeof value === "number") return true;
    if (typeof value !== "string" || !TEXTS.test(name)) return false;
    // The same file and no other: `a.py` beside a diff of `other/a.py` is worth reading.
    if (PATHS.test(name)) return paths.some((path) => path === value || path === `${cwd}/${value}`);
    if (REPLACED.test(name) && changed.some((line) => line.includes(value))) return true;
    return value.split("\n").every((line) => lines.has(line));
  };
  return Object.fromEntries(Object.entries(input).filter((field) => !isTold(field)));
}

/** Text in which what stands between backticks is code. */
function WithCode({ text }: { text: string }) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return <>{text}</>;
  return <>{parts.map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}

function Exact({ text }: { text: unknown }) {
  return <pre class="code exact">{visible(text)}</pre>;
}

function Fact({ name, children }: { name: string; children: any }) {
  return <p class="fact"><span class="muted">{name} </span><code>{children}</code></p>;
}
