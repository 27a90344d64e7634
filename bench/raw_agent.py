"""The agent end that costs next to nothing: blocking reads and writes, lines encoded before the clock runs.

It answers every request; a prompt `stream N TEXT` makes it write N chunks, and `big` the diff of BIG_BYTES that it was
started for: `raw_agent.py [BIG_BYTES]`.
"""

import json
import os
import sys

READ_BYTES = 65_536
SESSION = "bench-session"
MODES = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
RESULTS: dict[str, object] = {
    "initialize": {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "raw", "version": "1"}},
    "session/new": {"sessionId": SESSION, "modes": MODES},
    "session/prompt": {"stopReason": "end_turn"},
}


def main() -> None:
    big = encode(notification(diff(int(sys.argv[1])))) if len(sys.argv) > 1 else b""
    rest = b""
    while data := os.read(0, READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                answer(json.loads(line), big)


def answer(message: dict[str, object], big: bytes) -> None:
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str) or "id" not in message:
        return
    if method == "session/prompt" and isinstance(params, dict):
        turn(params["prompt"][0]["text"], big)
    write(encode({"jsonrpc": "2.0", "id": message["id"], "result": RESULTS.get(method, {})}))


def turn(text: str, big: bytes) -> None:
    word, count, *words = text.split(" ", 2)
    if word == "big":
        write(big)
        return
    line = encode(notification(chunk(words[0])))
    block = READ_BYTES // len(line)
    whole, part = divmod(int(count), block)
    for _ in range(whole):
        write(line * block)
    write(line * part)


def notification(update: dict[str, object]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": update}}


def chunk(text: str) -> dict[str, object]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def diff(count: int) -> dict[str, object]:
    content = {"type": "diff", "path": "/bench/file.py", "oldText": None, "newText": ("x" * 79 + "\n") * (count // 80)}
    return {"sessionUpdate": "tool_call_update", "toolCallId": "big", "content": [content]}


def encode(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
