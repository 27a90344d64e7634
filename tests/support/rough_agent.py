"""An agent in plain Python that misbehaves as it is told to. `python rough_agent.py MANNER...`

Manners
  noise       prints lines that are no messages on stdout, before and between its own
  flood       writes 4 MiB to stderr before each answer
  echo        answers any protocol version with the one it was asked for, in a version 1 body
  early       tells of a session before it has answered with its name
  replay      tells the whole story when it is told to resume
  extension   calls unknown methods, and waits for the answers
  stranger    tells and asks in the name of a session that was not opened
  label       asks whether it may run `rm`, and calls that reading
  bare        tells of a command, then asks about it by its id alone
  deaf        ignores SIGTERM, SIGHUP and the end of its input
  silent      never says anything after it got a prompt
  slow        answers a prompt when it is told to cancel
  stubborn    answers a prompt only when its request is withdrawn
  mute        never answers session/list
  dumb        never answers initialize
  dies        exits with code 7 at the first prompt
  stillborn   exits with code 9 at once
  forgets     can neither list, load nor resume sessions
  loses       says that it loads and resumes sessions, and finds none
  repeats     says its prompt again
  lent        says what it was offered in initialize
  child       starts a process of its own that outlives it, and prints its pid to stderr
"""

from __future__ import annotations

import json
import os
import signal
import sys

# Many of it are started, so it imports what it needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MANNERS = set(sys.argv[1:])
NEXT = iter(range(1, 1_000_000))
OFFERED: dict[str, Any] = {}


def say(message: dict[str, Any]) -> None:
    if "noise" in MANNERS:
        sys.stdout.write("npm WARN this is not a message\n{broken\n\n")
    if "flood" in MANNERS:
        sys.stderr.write("x" * (4 * 1024 * 1024) + "\nlast words\n")
        sys.stderr.flush()
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        while "deaf" in MANNERS:
            signal.pause()
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    number = f"ask-{next(NEXT)}"
    say({"id": number, "method": method, "params": params})
    while True:
        heard = hear()
        if heard.get("id") == number and "method" not in heard:
            return heard
        answer(heard)


def tell(session: str, text: str) -> None:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    say({"method": "session/update", "params": {"sessionId": session, "update": update}})


def permission(session: str, call: dict[str, Any]) -> dict[str, Any]:
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    return ask("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})


def prompt(message: dict[str, Any]) -> None:
    session = message["params"]["sessionId"]
    if "dies" in MANNERS:
        sys.stderr.write("I cannot go on\n")
        sys.exit(7)
    if "silent" in MANNERS:
        return
    if "slow" in MANNERS or "stubborn" in MANNERS:
        wanted = "session/cancel" if "slow" in MANNERS else "$/cancel_request"
        while (heard := hear()).get("method") != wanted:
            answer(heard)
        say({"id": message["id"], "result": {"stopReason": "cancelled"}})
        return
    if "extension" in MANNERS:
        codes = [ask(method, {"sessionId": session}) for method in ("_unknown/thing", "craft/drainMidTurnQueue")]
        tell(session, f"{[one['error']['code'] for one in codes]} ")
    if "stranger" in MANNERS:
        tell("stranger", "not for you")
        call: dict[str, Any] = {"toolCallId": "c", "title": "t", "rawInput": {"command": "rm"}}
        answers = [permission("stranger", call), ask("fs/read_text_file", {"sessionId": "stranger", "path": __file__})]
        tell(session, f"{[one['error']['code'] for one in answers]} ")
    if "label" in MANNERS or "bare" in MANNERS:
        call = {"toolCallId": "c", "title": "Reading README", "kind": "read", "rawInput": {"command": "rm -rf ."}}
        call["locations"] = [{"path": os.path.join(os.getcwd(), "README")}]
        if "bare" in MANNERS:
            update = {"sessionUpdate": "tool_call", "status": "pending", **call}
            say({"method": "session/update", "params": {"sessionId": session, "update": update}})
            call = {"toolCallId": "c"}
        tell(session, json.dumps(permission(session, call)["result"]) + " ")
    if "repeats" in MANNERS:
        tell(session, "".join(block["text"] for block in message["params"]["prompt"]))
    if "lent" in MANNERS:
        tell(session, json.dumps(OFFERED))
    tell(session, "done")
    say({"id": message["id"], "result": {"stopReason": "end_turn"}})


def answer(message: dict[str, Any]) -> None:
    number, method = message.get("id"), message.get("method")
    if method == "initialize" and "dumb" not in MANNERS:
        version = message["params"]["protocolVersion"] if "echo" in MANNERS else 1
        OFFERED.update(message["params"]["clientCapabilities"])
        able: dict[str, Any] = {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": {}}}
        if "forgets" in MANNERS:
            able = {}
        say({"id": number, "result": {"protocolVersion": version, "agentCapabilities": able}})
    elif method == "session/new":
        name = f"session-{next(NEXT)}"
        if "early" in MANNERS:
            tell(name, "early ")
        say({"id": number, "result": {"sessionId": name}})
    elif method in ("session/resume", "session/load"):
        if "loses" in MANNERS:
            say({"id": number, "error": {"code": -32603, "message": "No previous sessions found"}})
            return
        if "replay" in MANNERS:
            tell(message["params"]["sessionId"], "an old story ")
        say({"id": number, "result": {}})
    elif method == "session/prompt":
        prompt(message)
    elif method == "session/list" and "mute" in MANNERS:
        pass
    elif number is not None and method is not None and "dumb" not in MANNERS:
        say({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    if "stillborn" in MANNERS:
        sys.stderr.write("no configuration found\n")
        sys.exit(9)
    if "deaf" in MANNERS:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    if "child" in MANNERS:
        import subprocess

        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        sys.stderr.write(f"child {child.pid}\n")
        sys.stderr.flush()
    while True:
        answer(hear())


if __name__ == "__main__":
    main()
