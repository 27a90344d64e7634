"""A plain version 1 agent in a process of its own, whose session ids are a count of this process: "0", "1" and so on.

python counter.py FOLDER

What opens a session is written into FOLDER/opened, a line each, and prompts into FOLDER/prompts. It does what a prompt
says: `wait` until it is cancelled, ticking in FOLDER/ticks; `stubborn`, whatever it is told; `ask ID` for a permission
in that session; `read` a file of the client's; `note` twice outside of the vocabulary; `die`; `stray`, of a session
is not known; anything else is said back. A load waits while FOLDER/hold is there, a greeting while FOLDER/shut is; a
load asks a question about itself where FOLDER is called `elicit`. A new session in /flood tells of many others first.
"""

import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
counts = itertools.count()
answers: dict[Any, Any] = {}
arrived = threading.Condition()
cancelled: dict[str, threading.Event] = {}
speaking = threading.Lock()


def send(message: dict[str, Any]) -> None:
    with speaking:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def say(session_id: str, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": session_id, "update": update}})


def note(name: str, line: str) -> None:
    with (folder / name).open("a") as file:
        file.write(line + "\n")


def wait_while(name: str) -> None:
    while (folder / name).exists():
        time.sleep(0.01)


def ask(id: str, method: str, params: dict[str, Any]) -> Any:
    send({"id": id, "method": method, "params": params})
    with arrived:
        arrived.wait_for(lambda: id in answers)
        return answers.pop(id)


def permission(session_id: str) -> Any:
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
    params = {"sessionId": session_id, "toolCall": {"toolCallId": "t"}, "options": options}
    return ask("permission", "session/request_permission", params)


def turn(id: Any, session_id: str, text: str) -> None:
    stop = "end_turn"
    if text == "die":
        os._exit(3)
    elif text == "wait":
        gone = cancelled.setdefault(session_id, threading.Event())
        while not gone.wait(0.02):
            note("ticks", f"{os.getpid()}")
        stop = "cancelled"
        note("cancelled", session_id)
    elif text == "stubborn":
        while True:
            note("ticks", f"{os.getpid()}")
            time.sleep(0.02)
    elif text == "note":
        for params in ({}, {"sessionId": session_id}):
            send({"method": "_own/note", "params": params})
        say(session_id, text)
    elif text == "read":
        say(session_id, json.dumps(ask("read", "fs/read_text_file", {"sessionId": session_id, "path": "/a"})))
    elif text == "stray":
        say("stray", text)
        say(session_id, text)
    elif text.startswith("ask "):
        say(session_id, json.dumps(permission(text.removeprefix("ask "))))
    else:
        say(session_id, f"{os.getpid()} {text}")
    send({"id": id, "result": {"stopReason": stop}})


def load(id: Any, params: dict[str, Any]) -> None:
    if folder.name == "elicit":
        schema = {"type": "object", "properties": {}}
        question = {"requestId": id, "mode": "form", "message": "Well?", "requestedSchema": schema}
        note("elicited", json.dumps(ask("elicit", "elicitation/create", question)))
    wait_while("hold")
    say(params["sessionId"], "an old story")
    send({"id": id, "result": {}})


def take(message: dict[str, Any]) -> None:
    id, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case None:
            with arrived:
                answers[id] = message.get("result", message.get("error"))
                arrived.notify_all()
        case "initialize":
            note("clients", json.dumps(params))
            wait_while("shut")
            can = {"loadSession": True, "sessionCapabilities": {"close": {}, "delete": {}, "list": {}}}
            send({"id": id, "result": {"protocolVersion": 1, "agentCapabilities": can}})
        case "session/new":
            session_id = str(next(counts))
            say(session_id, "early")
            if params["cwd"] == "/flood":
                for number in range(300):
                    say(f"other-{number}", "x" * 10_000)
            send({"id": id, "result": {"sessionId": session_id}})
        case "session/load":
            note("opened", json.dumps(params))
            threading.Thread(target=load, args=(id, params), daemon=True).start()
        case "session/list":
            send({"id": id, "result": {"sessions": [{"sessionId": "0", "cwd": "/"}, {"sessionId": "z", "cwd": "/"}]}})
        case "session/close":
            note("closed", params["sessionId"])
            send({"id": id, "result": {}})
        case "session/prompt":
            text = params["prompt"][0]["text"]
            note("prompts", text)
            threading.Thread(target=turn, args=(id, params["sessionId"], text), daemon=True).start()
        case "session/cancel":
            cancelled.setdefault(params["sessionId"], threading.Event()).set()
        case _ if id is not None:
            send({"id": id, "error": {"code": -32601, "message": "no"}})


for line in sys.stdin:
    take(json.loads(line))
