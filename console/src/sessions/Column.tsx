// One of several sessions: what was said and done in it, what it asks, and its prompt.

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import { useStore } from "../app/context";
import { FormQuestion } from "../conversation/Form";
import { Permission } from "../conversation/Permission";
import { STILL } from "../conversation/Question";
import { ItemView, Queued } from "../conversation/Transcript";
import { Working } from "../conversation/Working";
import type { Followed, Question } from "../state/store";
import { visible } from "../text/visible";

const NEAR = 80; // pixels from the end, within which it is followed

export function Column({ followed }: { followed: Followed }) {
  const store = useStore();
  const { state } = followed;
  const question = [...store.questions.values()].find(({ params }) => params.sessionId === state.id);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current) box.current!.scrollTop = box.current!.scrollHeight;
  });
  const scrolled = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: { currentTarget: HTMLElement }) => {
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };
  return (
    <>
      <div class="story-box" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-live="off" aria-label={`Conversation: ${visible(state.title)}`}>
        <div class="story">
          {state.items.map((item) => <ItemView key={item.key} item={item} isAsked={false} rewind={null} />)}
          {followed.queue.map((prompt) => <Queued key={prompt.key} prompt={prompt} />)}
          <Working state={state} />
        </div>
      </div>
      {question && <Asked key={String(question.id)} question={question} followed={followed} />}
      {store.mayPrompt && <Prompt followed={followed} />}
    </>
  );
}

function Asked({ question, followed: { state } }: { question: Question; followed: Followed }) {
  const store = useStore();
  const [isAwake, setAwake] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setAwake(true), STILL);
    return () => clearTimeout(timer);
  }, []);
  const { method, params, id } = question;
  const isForm = method === "elicitation/create";
  const reply = (result: unknown) => void store.answer(id, result);
  return (
    <section class="asked" role="group" aria-label={visible(isForm ? params.message : params.title)}>
      <h3>{visible(isForm ? params.message : params.title)}</h3>
      {isForm ? <FormQuestion params={params} isAwake={isAwake} reply={reply} />
        : <Permission params={params} call={(callId) => state.call(callId)} cwd={state.cwd} isAwake={isAwake} reply={reply} hasKeys={false} />}
    </section>
  );
}

function Prompt({ followed: { state } }: { followed: Followed }) {
  const store = useStore();
  const [text, setText] = useState("");
  const [trouble, setTrouble] = useState("");
  const send = (event: Event) => {
    event.preventDefault();
    const sent = text;
    if (!sent.trim()) return;
    setText("");
    setTrouble("");
    store.promptIn(state.id, sent).catch((error: Error) => (setTrouble(error.message), setText((now) => now || sent)));
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || matchMedia("(pointer: coarse)").matches) return;
    send(event);
  };
  return (
    <>
      {trouble && <p role="alert" class="failure">{trouble}</p>}
      <form onSubmit={send}>
        <textarea rows={1} aria-label={`Prompt for ${visible(state.title)}`} placeholder="Say what to do." value={text}
          onInput={(event) => setText(event.currentTarget.value)} onKeyDown={pressed} />
        {state.isRunning && <button type="button" class="button icon" aria-label="Stop" onClick={() => store.stopIn(state.id)}><Icon name="stop" /></button>}
        <button class="button primary icon" aria-label="Send" disabled={!text.trim()}><Icon name="send" /></button>
      </form>
    </>
  );
}
