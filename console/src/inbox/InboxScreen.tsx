// The inbox: everything that waits for an answer, in all sessions. One question at a time, its facts above and its answers
// at the bottom, where a thumb is; the others stand in a list beside or above it.

import { useEffect, useRef, useState } from "preact/hooks";
import { Announcer } from "../components/overlay/Announcer";
import { Icon } from "../app/Icon";
import { useActivity, useApp, useStore } from "../app/context";
import { href } from "../app/router";
import { FormQuestion } from "../conversation/Form";
import { Permission } from "../conversation/Permission";
import "../conversation/conversation.css";
import { STILL } from "../conversation/Question";
import { currentAgent, goToAgent } from "../state/agents";
import { harmless, visible } from "../text/visible";
import { roughly, shortPath } from "../text/words";
import { useInbox, type InboxItem } from "./questions";
import "./inbox.css";

// So long a question may be on its way before it is said that it is put to others.
const PATIENCE = 8000; // milliseconds

export default function InboxScreen() {
  const items = useInbox();
  const activity = useActivity();
  const { mayPrompt } = useStore();
  const [wanted, setWanted] = useState("");
  const shown = items.find(({ key }) => key === wanted) ?? items[0];
  if (!shown) return <Empty isKnown={activity.isKnown} trouble={activity.trouble} />;
  const at = items.indexOf(shown);
  const goTo = (place: number) => setWanted(items[(place + items.length) % items.length]!.key);
  return (
    <div class="inbox">
      <Announcer text={`${items.length} waiting`} />
      {items.length > 1 && (
        <nav class="waiting" aria-label="What waits">
          <button class="button icon previous" aria-label="Previous" onClick={() => goTo(at - 1)}><Icon name="chevron" /></button>
          <span class="small muted place">{at + 1} of {items.length}</span>
          <button class="button icon next" aria-label="Next" onClick={() => goTo(at + 1)}><Icon name="chevron" /></button>
          <ol>
            {items.map((item) => (
              <li key={item.key}>
                <button class="row" aria-current={item === shown ? "true" : undefined} onClick={() => setWanted(item.key)}>
                  <span class="ellipsis">{asks(item)}</span>
                  <span class="small muted ellipsis">{harmless(item.title)} · {roughly(waits(item))}</span>
                </button>
              </li>
            ))}
          </ol>
        </nav>
      )}
      <Card key={shown.key} item={shown} mayAnswer={mayPrompt} next={() => setWanted(items[at + 1]?.key ?? "")} />
    </div>
  );
}

function Empty({ isKnown, trouble }: { isKnown: boolean; trouble: string }) {
  if (trouble) return <p role="alert" class="failure">{trouble}</p>;
  if (!isKnown) return <p class="muted" role="status">Looking…</p>;
  return (
    <section class="nothing">
      <Icon name="inbox" size={40} />
      <h2>Nothing waits for you</h2>
      <p class="muted">
        When an agent asks for a permission or has a question, it is shown here, from all sessions. You need not keep this page
        open: <a href={href("settings")}>have this browser notify you, or a server of yours</a>.
      </p>
      <p><a class="button" href={href("sessions")}>All sessions</a></p>
    </section>
  );
}

interface CardProps {
  item: InboxItem;
  mayAnswer: boolean;
  next: () => void;
}

function Card({ item, mayAnswer, next }: CardProps) {
  const { question, session } = item;
  const isAwake = useWaking(question !== null);
  const box = useRef<HTMLElement>(null);
  // What was read out belongs to the question before.
  useEffect(() => box.current?.focus({ preventScroll: true }), []);
  const reply = (result: unknown) => {
    item.answer(result);
    next();
  };
  return (
    <article class="question" tabIndex={-1} ref={box} aria-labelledby="inbox-title">
      <header>
        <h2 id="inbox-title">{asks(item)}</h2>
        <p class="small muted">
          <SessionLink item={item} /> · <span title={visible(session.cwd)}>{visible(shortPath(session.cwd))}</span>
          {session.agent && <> · {visible(session.agent)}</>} · waits for {roughly(waits(item))}
        </p>
      </header>
      {question === null ? (
        <Absent mayAnswer={mayAnswer} />
      ) : question.method === "elicitation/create" ? (
        <FormQuestion params={question.params} isAwake={isAwake} reply={reply} />
      ) : (
        <Permission before={item.said && <blockquote tabIndex={0}><span class="small muted">The agent said before:</span> {harmless(item.said)}</blockquote>}
          params={question.params} call={item.call} cwd={session.cwd} isAwake={isAwake} reply={reply} />
      )}
    </article>
  );
}

/** A question that is not here: on its way, or put to those who may do the thing themselves. */
function Absent({ mayAnswer }: { mayAnswer: boolean }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE);
    return () => clearTimeout(timer);
  }, []);
  if (!mayAnswer) return <p class="subject">Your login may read, and not answer. Someone who may prompt can answer it.</p>;
  if (!isLate) return <p class="subject muted" role="status">Asking what it is…</p>;
  return (
    <p class="subject">
      This question is put to others: your login may not do what is asked for, so your yes would not count. A login with more
      rights can answer it, or you stop the turn in its session.
    </p>
  );
}

function SessionLink({ item: { session, title } }: { item: InboxItem }) {
  const { me, store } = useApp();
  const address = href("session", session.sessionId);
  if (session.agent === currentAgent(me)) return <a href={address}>{harmless(title)}</a>;
  return <a href={address} onClick={(event) => (event.preventDefault(), goToAgent(store, session.agent, address))}>{harmless(title)}</a>;
}

/** A card that appears under a finger is not answered by it. */
function useWaking(isThere: boolean): boolean {
  const [isAwake, setAwake] = useState(false);
  useEffect(() => {
    if (!isThere) return;
    const timer = setTimeout(() => setAwake(true), STILL);
    return () => clearTimeout(timer);
  }, [isThere]);
  return isAwake;
}

function asks({ question, session }: InboxItem): string {
  if (question === null) return session.questions[0]?.kind === "form" ? "A question" : "A permission";
  return visible(question.method === "elicitation/create" ? question.params.message : question.params.title);
}

function waits({ session }: InboxItem): number {
  return Math.max(...session.questions.map(({ seconds }) => seconds));
}
