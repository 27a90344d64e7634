"""An agent of a test's own making: a program of the standard library that plays a plan, as v1, and notes what it hears.

    python rogue.py PLAN.json

A plan is `{"hello": {…}, "opened": {…}, "steps": [...]}`; each prompt plays the steps. `"errors": {METHOD: {…}}` is how
it answers other requests, `"silent": [METHOD, …]` is what it does not answer, and `"then": [steps]` what it tells when
it has opened a session and a file `PLAN.json.go` is there. With `"version": 2` it speaks that: a prompt is accepted
first, and the end of a turn is a state.

A step: `{"update": {…}}` tells one, `{"ask": METHOD, "params": {…}}` asks and waits for the answer (with
`"then": [steps]`, which it tells meanwhile, once that file is there), `{"raw": TEXT}` writes a line as it is,
`{"stderr": TEXT}`, `{"exit": CODE}`, `{"wait": "go" | "cancel" | "for ever"}` (`go` is that file), `{"fail": {error}}`
and `{"end": REASON}`. Everything it hears is appended to `PLAN.json.heard`, a JSON value a line, and its process id
stands in `PLAN.json.pid`.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False  # what is named below takes longer to import than all that a rogue does
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

SESSION = "s1"
HELLO: dict[int, dict[str, Any]] = {
    1: {"protocolVersion": 1},
    2: {"protocolVersion": 2, "info": {"name": "rogue", "version": "1"}, "capabilities": {"session": {}}},
}


class Rogue:
    def __init__(self, plan: str) -> None:
        with open(plan, encoding="utf-8") as file:
            self.plan: dict[str, Any] = json.load(file)
        self.heard = open(f"{plan}.heard", "a", encoding="utf-8")  # noqa: SIM115
        with open(f"{plan}.pid", "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        self.version: int = self.plan.get("version", 1)
        self.go = f"{plan}.go"
        self.asked = 0

    def say(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def hear(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        message: dict[str, Any] = json.loads(line)
        self.heard.write(json.dumps(message) + "\n")
        self.heard.flush()
        return message

    def serve(self) -> None:
        while True:
            message = self.hear()
            method, id = message.get("method"), message.get("id")
            if method in self.plan.get("silent", []):
                continue
            if method in self.plan.get("errors", {}):
                self.say(id=id, error=self.plan["errors"][method])
            elif method == "initialize":
                self.say(id=id, result={**HELLO[self.version], **self.plan.get("hello", {})})
            elif method in ("session/new", "session/load"):
                self.say(id=id, result={"sessionId": SESSION, **self.plan.get("opened", {})})
                for step in self.plan.get("then", []):
                    self.wait_to_go()
                    self.say(method="session/update", params={"sessionId": SESSION, "update": step["update"]})
            elif method == "session/prompt":
                self.play(id)
            elif id is not None and method is not None:
                self.say(id=id, result=self.plan.get("answers", {}).get(method, {}))

    def play(self, id: Any) -> None:
        if self.version == 2:
            self.say(id=id, result={"messageId": f"user-{id}"})
            self.state("running")
        for step in self.plan["steps"]:
            if "update" in step:
                self.say(method="session/update", params={"sessionId": SESSION, "update": step["update"]})
            elif "ask" in step:
                self.ask(step["ask"], step["params"], step.get("then", []))
            elif "raw" in step:
                sys.stdout.write(step["raw"] + "\n")
                sys.stdout.flush()
            elif "stderr" in step:
                sys.stderr.write(step["stderr"])
                sys.stderr.flush()
            elif "exit" in step:
                os._exit(step["exit"])
            elif step.get("wait") == "go":
                self.wait_to_go()
            elif step.get("wait") == "cancel":
                while self.hear().get("method") != "session/cancel":
                    pass
            elif step.get("wait") == "for ever":
                while True:
                    time.sleep(60)
            elif "fail" in step:
                self.say(id=id, error=step["fail"])
                return
            else:
                self.end(id, step["end"])
                return
        self.end(id, "end_turn")

    def end(self, id: Any, reason: str) -> None:
        if self.version == 2:
            self.state("idle", stopReason=reason)
        else:
            self.say(id=id, result={"stopReason": reason})

    def state(self, state: str, **more: Any) -> None:
        update = {"sessionUpdate": "state_update", "state": state, **more}
        self.say(method="session/update", params={"sessionId": SESSION, "update": update})

    def wait_to_go(self) -> None:
        while not os.path.exists(self.go):
            time.sleep(0.02)

    def ask(self, method: str, params: dict[str, Any], then: list[dict[str, Any]]) -> None:
        self.asked += 1
        mine = f"q{self.asked}"
        self.say(id=mine, method=method, params={"sessionId": SESSION, **params})
        if then:
            self.wait_to_go()
        for update in then:
            self.say(method="session/update", params={"sessionId": SESSION, "update": update["update"]})
        while self.hear().get("id") != mine:
            pass


def text(words: str) -> dict[str, Any]:
    """A step: the agent says something."""
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}}


def call(id: str = "c1", **fields: Any) -> dict[str, Any]:
    """A step: a tool call."""
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": id, "title": "A call", **fields}}


def permission(title: str, *, options: list[dict[str, str]] | None = None, **fields: Any) -> dict[str, Any]:
    """A step: the agent asks for permission."""
    offered = options or [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    params = {"toolCall": {"toolCallId": "c1", "title": title, **fields}, "options": offered}
    return {"ask": "session/request_permission", "params": params}


def written(folder: Path, *steps: dict[str, Any], **plan: Any) -> list[str]:
    """The command that plays these steps. What it heard is read by `heard(folder)`."""
    (folder / "plan.json").write_text(json.dumps({"steps": list(steps), **plan}), encoding="utf-8")
    return [sys.executable, "-I", "-S", __file__, str(folder / "plan.json")]


def heard(folder: Path, method: str | None = None) -> list[dict[str, Any]]:
    """What it heard: the params of these requests, or all messages."""
    lines = (folder / "plan.json.heard").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line) for line in lines]
    return messages if method is None else [one["params"] for one in messages if one.get("method") == method]


def answers(folder: Path) -> list[Any]:
    """What it was answered, in order."""
    return [one.get("result", one.get("error")) for one in heard(folder) if str(one.get("id", "")).startswith("q")]


def is_gone(folder: Path) -> bool:
    """Whether its process has ended."""
    try:
        os.kill(int((folder / "plan.json.pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


if __name__ == "__main__":
    Rogue(sys.argv[1]).serve()
