// How a client peer in TypeScript's SDK is told what to do and tells what it saw: the same lines as telling.py.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [planText, folder, command, ...args] = process.argv.slice(2);

export const plan = JSON.parse(planText);
export const cwd = folder;

export function tell(kind, value) {
  process.stdout.write(JSON.stringify([kind, value]) + "\n");
}

export function tellError({ code, message, data }) {
  tell("error", { code, message, data: data ?? null });
}

// Starts the agent; its two ends as web streams, and a way to end it kindly.
export function startAgent() {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
  return {
    streams: [Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)],
    async end() {
      child.stdin.end();
      tell("exit", await exited);
    },
  };
}
