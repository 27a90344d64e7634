// What this tab knows again after a reload: its connection, which questions it has answered in it, and the draft of a
// prompt that is not sent. And what all tabs of this origin share: the options of a new session.

import type { Id } from "../wire/wire";
import { drop, keep, load, ofOrigin, ofTab } from "./storage";
import type { Option } from "./types";

const ANSWERED = 200; // the last ones; a question is not open for that long
const REQUESTS = 50; // the last ones that wait for an answer
const NAME = "dragoman";
const DRAFT = "dragoman-draft"; // apart: it outlives the connection
const NEXT = "dragoman-next"; // what was chosen for a session that is not made yet
const OPTIONS = "dragoman-options"; // what a new session offers
const AGENT = "dragoman-agent";
const BINDING = "dragoman-login";

/** What is kept of a session that this tab follows. */
export interface KeptSession {
  /** The number of the message from which on the session is told in the connection. */
  from: number;
  cwd: string;
  options: Option[];
  optionsAt: number;
  title: string;
}

export interface Kept {
  connection?: string;
  sessions?: Record<string, KeptSession>;
  answered?: [Id, number][];
  requests?: [Id, string][];
  /** What the agent can do with sessions. */
  deletes?: boolean;
  rewinds?: boolean;
  steers?: boolean;
  forks?: boolean;
  images?: boolean;
  embeds?: boolean;
}

/** The agent that this tab talks to, of a server with several; empty: the first. */
export function chosenAgent(): string {
  try {
    return sessionStorage.getItem(AGENT) ?? "";
  } catch {
    return "";
  }
}

/** Choose another agent: the connection and the sessions of this tab were those of the one before. */
export function chooseAgent(name: string): void {
  forget();
  forgetNewOptions();
  try {
    sessionStorage.setItem(AGENT, name);
  } catch {
    // there is no room: it stays the first
  }
}

export function recall(): Kept | null {
  return load(ofTab, NAME) as Kept | null;
}

export function remember(more: Kept): void {
  if (!keep(ofTab, NAME, { ...recall(), ...more })) forget(); // a reload has the session told by the agent
}

export function forget(): void {
  drop(ofTab, NAME);
}

/** Questions that were answered: each with the number of the message that did so. */
export const answered = (): [Id, number][] => recall()?.answered ?? [];

export function rememberAnswer(id: Id, number: number): void {
  remember({ answered: [...answered(), [id, number] as [Id, number]].slice(-ANSWERED) });
}

/** Requests about a session whose answer has the session's options: it may come after a reload. */
export const requestMemory = {
  remember(id: string, sessionId: string): void {
    remember({ requests: [...(recall()?.requests ?? []), [id, sessionId] as [Id, string]].slice(-REQUESTS) });
  },
  forget(id: Id): string | undefined {
    const known = recall()?.requests ?? [];
    const request = known.find(([one]) => one === id);
    if (request) remember({ requests: known.filter((one) => one !== request) });
    return request?.[1];
  },
};

/** The draft that the user of this name has written; empty where the draft is of another user. */
export function draft(name: string): string {
  const [owner, text] = pair(load(ofTab, DRAFT));
  return owner === name ? String(text) : "";
}

/** Keep a draft. One that is too long still stands where it was written. */
export function keepDraft(name: string, text: string): void {
  if (text) keep(ofTab, DRAFT, [name, text]);
  else drop(ofTab, DRAFT);
}

/** What was chosen for the next session; `open`: it is the one that is shown. */
export interface NextSession {
  open?: boolean;
  folder?: string;
  chosen?: Record<string, string | boolean>;
}

export function next(name: string): NextSession {
  const [owner, choice] = pair(load(ofTab, NEXT));
  return owner === name ? (choice as NextSession) : {};
}

export function keepNext(name: string, choice: NextSession): void {
  keep(ofTab, NEXT, [name, choice]);
}

/** Keep what a login with the issuer is bound to this tab by, and what the page showed; false where nothing can be. */
export function keepBinding(binding: string, hash: string): boolean {
  return keep(ofTab, BINDING, [binding, hash]);
}

/** What was kept, which counts once: the binding, or "", and what the page showed. */
export function takeBinding(): [string, string] {
  const [binding, hash] = pair(load(ofTab, BINDING));
  drop(ofTab, BINDING);
  return binding === undefined ? ["", ""] : [String(binding), String(hash)];
}

/** The options of a new session, as the last one that was made here had them. */
export function newOptions(name: string): Option[] {
  const [owner, options] = pair(load(ofOrigin, OPTIONS));
  return owner === name && Array.isArray(options) ? (options as Option[]) : [];
}

export function rememberNewOptions(name: string, options: Option[]): void {
  keep(ofOrigin, OPTIONS, [name, options]);
}

export function forgetNewOptions(): void {
  drop(ofOrigin, OPTIONS);
}

function pair(value: unknown): [unknown, unknown] {
  return Array.isArray(value) ? [value[0], value[1]] : [undefined, undefined];
}
