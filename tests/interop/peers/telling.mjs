// How a client peer in TypeScript's SDK is told what to do and tells what it saw: the same lines as telling.py.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

// Plays the tasks on stdin, each when the one before it is done.
export async function eachTask(play) {
  for await (const line of createInterface({ input: process.stdin })) {
    await play(JSON.parse(line));
    tell("done", null);
  }
}

export function tell(kind, value) {
  process.stdout.write(JSON.stringify([kind, value]) + "\n");
}

export function tellError({ code, message, data }) {
  tell("error", { code, message, data: data ?? null });
}

// Starts a task's agent; its two ends as web streams, and a way to end it kindly.
export function startAgent({ agent: [command, ...args], env }) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } });
  const exited = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
  return {
    streams: [Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)],
    async end() {
      child.stdin.end();
      tell("exit", await exited);
    },
  };
}
