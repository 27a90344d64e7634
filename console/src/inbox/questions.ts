// The questions that wait, of every session at every agent, each with the connection that it is answered on.
//
// The server says which sessions wait. Those of the agent of this tab are followed in its own connection, those of others
// in one each; what is asked comes there, if this user may answer it.

import { useEffect, useReducer, useRef } from "preact/hooks";
import { useActivity, useApp, useStore } from "../app/context";
import type { BusySession } from "../state/activity";
import type { AgentLink } from "../state/agent_links";
import { currentAgent } from "../state/agents";
import { plainText } from "../conversation/text";
import type { SessionState } from "../state/session";
import type { Question, SessionStore } from "../state/store";
import type { ToolCall } from "../state/types";

const WORDS = 600; // characters of what the agent said before it asked

/** A question in the inbox. */
export interface InboxItem {
  key: string;
  session: BusySession;
  title: string;
  /** What is asked; null: it has not come yet, or is put to others. */
  question: Question | null;
  /** What the agent said last. */
  said: string;
  /** What was said of a call before. */
  call: (callId: string) => ToolCall | undefined;
  answer: (result: unknown) => void;
}

/** What waits now, the oldest question first; the component is drawn again when that changes. */
export function useInbox(): InboxItem[] {
  const { me, links } = useApp();
  const store = useStore();
  const activity = useActivity();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => links.subscribe(() => redraw(undefined)), [links]);
  // What was answered here and the server still lists, because it was asked before.
  const settled = useRef(new Set<string>()).current;
  const own = currentAgent(me);
  const waiting = activity.sessions.filter((session) => session.questions.length > 0);
  const names = waiting.map(({ sessionId }) => sessionId).join(" ");
  useEffect(() => {
    if (!store.mayPrompt) return; // a question is put to those who may answer
    for (const session of waiting) void attend(session, session.agent === own ? store : links.to(session.agent));
  }, [names, store.link.is]);
  const settle = (session: BusySession) => {
    for (const { id } of session.questions) settled.add(id);
    void activity.look();
  };
  return waiting
    .flatMap((session) => itemsOf(session, session.agent === own ? ofStore(store) : ofLink(links.to(session.agent)), settle))
    .filter(({ question, session }) => question !== null || !session.questions.every(({ id }) => settled.has(id)))
    .sort((one, other) => oldest(other) - oldest(one));
}

interface Source {
  questions: ReadonlyMap<unknown, Question>;
  state: (sessionId: string) => SessionState | undefined;
  titleOf: (sessionId: string) => string;
  answer: (id: Question["id"], result: unknown) => void;
}

function attend({ sessionId, cwd }: BusySession, to: SessionStore | AgentLink): Promise<void> {
  const asked = "agent" in to ? to.attend(sessionId, cwd) : to.attend({ sessionId, cwd });
  return asked.catch(() => undefined); // it may have ended meanwhile; the next look says so
}

function ofStore(store: SessionStore): Source {
  return {
    questions: store.questions,
    state: (sessionId) => store.followed.get(sessionId)?.state,
    titleOf: (sessionId) => store.titleOf(sessionId),
    answer: (id, result) => void store.answer(id, result),
  };
}

function ofLink(link: AgentLink): Source {
  return {
    questions: link.questions,
    state: (sessionId) => link.followed.get(sessionId),
    titleOf: (sessionId) => link.followed.get(sessionId)?.title || link.titles.get(sessionId) || "Untitled",
    answer: (id, result) => void link.answer(id, result),
  };
}

function itemsOf(session: BusySession, source: Source, settle: (session: BusySession) => void): InboxItem[] {
  const asked = [...source.questions.values()].filter(({ params }) => params.sessionId === session.sessionId);
  const state = source.state(session.sessionId);
  const base = {
    session,
    title: source.titleOf(session.sessionId),
    said: lastWords(state),
    call: (callId: string) => state?.call(callId),
  };
  const found = asked.map((question) => ({
    ...base,
    key: `${session.agent} ${session.sessionId} ${question.id}`,
    question,
    answer: (result: unknown) => {
      source.answer(question.id, result);
      if (asked.length === 1) settle(session);
    },
  }));
  if (found.length) return found;
  return [{ ...base, key: `${session.agent} ${session.sessionId}`, question: null, answer: () => {} }];
}

/** The end of what the agent said last in this turn. */
function lastWords(state: SessionState | undefined): string {
  const last = state?.items.findLast((item) => item.type === "agent" || item.type === "user");
  if (last?.type !== "agent") return "";
  const text = plainText(last.blocks).trim();
  return text.length > WORDS ? `… ${text.slice(-WORDS)}` : text;
}

function oldest({ session }: InboxItem): number {
  return Math.max(...session.questions.map(({ seconds }) => seconds));
}

