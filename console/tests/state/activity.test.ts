// What runs and waits, as the server is asked for it.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Activity } from "../../src/state/activity";

const WAITING = { agent: "", sessionId: "s1", state: "waiting", cwd: "/", seconds: 1, questions: [{ id: "q1", kind: "permission", seconds: 1 }] };

let answers: (() => Response)[] = [];
let asked = 0;

beforeEach(() => {
  vi.useFakeTimers();
  asked = 0;
  vi.stubGlobal("fetch", async () => {
    asked += 1;
    return (answers.length > 1 ? answers.shift()! : answers[0]!)();
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const ok = (...sessions: unknown[]) => () => new Response(JSON.stringify({ sessions, more: false }));
const refused = (status: number, error: string) => () => new Response(JSON.stringify({ error }), { status });

test("it is asked at intervals, and tells what changed beside what was known before", async () => {
  answers = [ok(WAITING), ok(WAITING), ok()];
  const activity = new Activity();
  const told: [number, number][] = [];
  activity.subscribe((before) => told.push([before.length, activity.sessions.length]));
  activity.start();
  await vi.advanceTimersByTimeAsync(0);
  expect([activity.waiting, activity.of("s1")?.state, told]).toEqual([1, "waiting", [[0, 1]]]);
  await vi.advanceTimersByTimeAsync(3000);
  expect(told).toEqual([[0, 1]]);
  await vi.advanceTimersByTimeAsync(3000);
  expect([activity.waiting, told]).toEqual([0, [[0, 1], [1, 0]]]);
  activity.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(3);
});

test("a server that is away is a sentence, and is asked again; what was known stays", async () => {
  answers = [ok(WAITING), refused(503, "That cannot be known now. Try again later."), ok(WAITING)];
  const activity = new Activity();
  activity.start();
  await vi.advanceTimersByTimeAsync(0);
  await vi.advanceTimersByTimeAsync(3000);
  expect([activity.trouble, activity.waiting]).toEqual(["That cannot be known now. Try again later.", 1]);
  await vi.advanceTimersByTimeAsync(3000);
  expect(activity.trouble).toBe("");
  activity.close();
});

test("a login that has ended is asked for no more", async () => {
  answers = [refused(401, "This login has ended.")];
  const activity = new Activity();
  activity.start();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(1);
});

test("two looks at once are one question", async () => {
  answers = [ok()];
  const activity = new Activity();
  await Promise.all([activity.look(), activity.look()]);
  expect(asked).toBe(1);
  activity.close();
});
