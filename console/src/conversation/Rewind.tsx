// Going back to before a prompt: what would happen, and one more click.

import { useEffect, useRef, useState } from "preact/hooks";
import { useApp } from "../app/context";
import { visible } from "../text/visible";
import { DiffView } from "./rich";
import { setPrompt } from "./draft";

const SCOPES = { both: "Files and conversation", files: "Files only", conversation: "Conversation only" } as const;
const DEEDS: Record<string, string> = { restore: "bring back", delete: "delete", change: "change back" };
const FILES = 200; // files that are listed

export interface RewindRequest {
  sessionId: string;
  messageId: string;
  /** The prompt, to be edited and sent again. */
  text: string;
}

interface Outcome {
  number?: number;
  files: { path: string; action: string; trouble?: string | null; diff?: string | null }[];
  prompts?: number;
  notCovered?: string[];
}

type Step =
  | { is: "looking" | "going" }
  | { is: "asking"; outcome: Outcome }
  | { is: "done"; outcome: Outcome; scope: string; isUndo: boolean }
  | { is: "failed"; why: string };

export function RewindPanel({ request, close }: { request: RewindRequest | null; close: () => void }) {
  return (
    <section id="rewind" class="panel" role="dialog" aria-label="Rewind" tabIndex={-1} hidden={request === null}>
      {request && <Rewind key={request.messageId} request={request} close={close} />}
    </section>
  );
}

function Rewind({ request, close }: { request: RewindRequest; close: () => void }) {
  const { store } = useApp();
  const [step, setStep] = useState<Step>({ is: "looking" });
  const choices = useRef<HTMLDivElement>(null);
  const { sessionId, messageId } = request;
  const ask = async (params: object, then: (outcome: Outcome) => Step) => {
    try {
      setStep(then(await store.request<Outcome>("_session/rewind", { sessionId, ...params })));
    } catch (error) {
      setStep({ is: "failed", why: (error as Error).message });
      return false;
    }
    return true;
  };
  useEffect(() => void ask({ messageId, scope: "both", preview: true }, (outcome) => ({ is: "asking", outcome })), []);
  useEffect(() => choices.current?.querySelector<HTMLElement>("button:last-of-type")?.focus(), [step]);
  const carryOut = async (scope: string, { isUndo = false, edit = false } = {}) => {
    setStep({ is: "going" });
    const params = isUndo ? { scope, undo: true } : { messageId, scope };
    if (!(await ask(params, (outcome) => ({ is: "done", outcome, scope, isUndo })))) return;
    store.reopen(sessionId);
    if (edit) {
      close();
      setPrompt(store.me.name, request.text);
    }
  };
  return (
    <>
      <h2>{heading(step)}</h2>
      {step.is === "looking" && <p class="muted">Looking at the files …</p>}
      {step.is === "going" && <p class="muted">Going back …</p>}
      {step.is === "failed" && <p class="fact">{visible(step.why)}</p>}
      {(step.is === "asking" || step.is === "done") && <Subject outcome={step.outcome} />}
      <div class="choices" ref={choices}>
        {step.is === "asking" && Object.entries(SCOPES).map(([scope, words]) => (
          <button type="button" class="button choice allow" key={scope} onClick={() => void carryOut(scope)}>{words}</button>
        ))}
        {step.is === "asking" && (
          <button type="button" class="button choice edit" onClick={() => void carryOut("both", { edit: true })}>Both, and edit the prompt</button>
        )}
        {step.is === "done" && !step.isUndo && (
          <button type="button" class="button choice" onClick={() => void carryOut(step.scope, { isUndo: true })}>Undo</button>
        )}
        {step.is !== "going" && (
          <button type="button" class="button choice" onClick={close}>{step.is === "asking" || step.is === "looking" ? "Cancel" : "Close"}</button>
        )}
      </div>
    </>
  );
}

function heading(step: Step): string {
  switch (step.is) {
    case "looking": case "going": return "Rewind";
    case "asking": return `Go back to before prompt ${step.outcome.number}?`;
    case "done": return step.isUndo ? "Undone." : "Done.";
    case "failed": return "It was not rewound";
  }
}

function Subject({ outcome: { files, prompts, notCovered } }: { outcome: Outcome }) {
  return (
    <div class="subject" tabIndex={0} role="group" aria-label="What is changed">
      {files.slice(0, FILES).map(({ path, action, trouble, diff }) => {
        const words = trouble ? `left alone: ${trouble}` : DEEDS[action] ?? action;
        const line = <div class="path" key={path}>{visible(words)} {visible(path)}</div>;
        return diff ? <details key={path}><summary>{line}</summary><DiffView diff={{ type: "diff", changes: [{ path }], patch: { text: diff } }} /></details> : line;
      })}
      {files.length > FILES && <p class="fact">and {files.length - FILES} more files</p>}
      {prompts ? <p class="fact">{prompts} prompts are taken out of the conversation</p> : null}
      {(notCovered ?? []).map((sentence) => <p class="fact" key={sentence}>Note: {visible(sentence)}</p>)}
      {!files.length && !prompts && !notCovered?.length && <p class="fact">No file is another.</p>}
    </div>
  );
}
