// What the agent asks of a person, one at a time, in a place of its own: the transcript is a box that nothing in it can
// leave, so whatever the agent says there, it cannot look like this. What is to be judged is shown to the last character.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { focusPrompt } from "../app/Frame";
import { useStore } from "../app/context";
import type { Question } from "../state/store";
import { visible } from "../text/visible";
import { FormQuestion } from "./Form";
import { Permission } from "./Permission";

// A box that appears under a finger or below a key is not answered by it.
export const STILL = 400; // milliseconds

export function QuestionPanel() {
  const store = useStore();
  const box = useRef<HTMLElement>(null);
  const question = store.questions.values().next().value;
  const more = store.questions.size - 1;
  useFocusAfterwards(box, question !== undefined);
  return (
    <section id="question" class="panel" role="alertdialog" aria-labelledby="question-title" tabIndex={-1} ref={box} hidden={!question}>
      {question && <OneQuestion key={String(question.id)} question={question} more={more} />}
    </section>
  );
}

function OneQuestion({ question, more }: { question: Question; more: number }) {
  const store = useStore();
  const isAwake = useWaking();
  const { method, params, id } = question;
  const isForm = method === "elicitation/create";
  const elsewhere = params.sessionId !== undefined && params.sessionId !== store.current?.state.id;
  const reply = (result: unknown) => store.answer(id, result);
  return (
    <>
      <h2 id="question-title">
        <span class="who">The agent asks </span>
        {visible(isForm ? params.message : params.title)}
        {elsewhere && <span class="muted"> in {visible(store.titleOf(params.sessionId))}</span>}
        {more > 0 && <span class="muted more"> and {more} more</span>}
      </h2>
      {isForm ? (
        <FormQuestion params={params} isAwake={isAwake} reply={reply} />
      ) : (
        <Permission
          params={params}
          call={(callId) => store.followed.get(params.sessionId)?.state.call(callId)}
          cwd={store.followed.get(params.sessionId)?.state.cwd ?? ""}
          isAwake={isAwake}
          reply={reply}
        />
      )}
    </>
  );
}

/** Enable the buttons after `STILL`, and focus the box unless the user is writing a prompt. */
function useWaking(): boolean {
  const [isAwake, setAwake] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setAwake(true), STILL);
    return () => clearTimeout(timer);
  }, []);
  useLayoutEffect(() => {
    const { activeElement } = document;
    const isWriting = activeElement instanceof HTMLTextAreaElement && activeElement.value !== "";
    if (!isWriting) document.getElementById("question")?.focus({ preventScroll: true });
  }, []);
  return isAwake;
}

/** When nothing is left to answer, and what had the focus is gone, the prompt gets it. */
function useFocusAfterwards(box: { current: HTMLElement | null }, isAsked: boolean) {
  const wasAsked = useRef(false);
  // Before the browser draws: the next key may come at any time.
  useLayoutEffect(() => {
    const { activeElement } = document;
    const isLost = activeElement === null || activeElement === document.body || box.current?.contains(activeElement);
    if (wasAsked.current && !isAsked && isLost) focusPrompt();
    wasAsked.current = isAsked;
  });
}
