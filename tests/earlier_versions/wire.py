"""A client that speaks raw JSON lines to `dragoman acp`: knows nothing of the package that it tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

# Exists on every machine, holds no secrets, and no session of these tests changes it.
FOLDER: Final = "/usr/share"

_INITIALIZE: Final = {
    1: {"protocolVersion": 1, "clientInfo": {"name": "recorder", "version": "1"}, "clientCapabilities": {}},
    2: {"protocolVersion": 2, "info": {"name": "recorder", "version": "1"}, "capabilities": {}},
}


class Wire:
    """One agent process. `answers` has the kind of option to choose, by a word in the title of what is asked."""

    def __init__(self, home: Path, version: int, *options: str) -> None:
        env = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        command = [sys.executable, "-m", "dragoman", "acp", *options]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**env, "DRAGOMAN_HOME": str(home)})
        self._version, self._calls, self.session = version, 0, ""
        self.answers: dict[str, str] = {}
        self.asked: list[str] = []
        self.ask("initialize", _INITIALIZE[version])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def kill(self) -> None:
        """End the agent as a crash would."""
        self._process.kill()
        self._process.wait()

    def ask(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a request; every message up to its answer, which is the last."""
        self._calls += 1
        number = self._calls
        self._send({"id": number, "method": method, "params": params})
        messages = [self._receive()]
        while messages[-1].get("id") != number or "method" in messages[-1]:
            messages.append(self._receive())
        assert "error" not in messages[-1], messages[-1]
        return messages

    def new_session(self) -> str:
        self.session = self.ask("session/new", {"cwd": FOLDER, "mcpServers": []})[-1]["result"]["sessionId"]
        return self.session

    def load(self, session: str) -> list[Any]:
        """Load a session with its history; the updates, then the answer's result."""
        method = "session/load" if self._version == 1 else "session/resume"
        params: dict[str, Any] = {"sessionId": session, "cwd": FOLDER, "mcpServers": []}
        if self._version == 2:
            params["replayFrom"] = {"type": "start"}
        *updates, answer = self.ask(method, params)
        self.session = session
        return [*(update["params"]["update"] for update in updates), answer["result"]]

    def prompt(self, text: str) -> list[dict[str, Any]]:
        """A whole turn of version 1; its updates and its answer."""
        messages = self.ask("session/prompt", self._prompt(text))
        return [message["params"]["update"] for message in messages[:-1]] + [messages[-1]["result"]]

    def begin(self, text: str, until: str) -> None:
        """Begin a turn, and return when the agent has said `until`."""
        self._calls += 1
        self._send({"id": self._calls, "method": "session/prompt", "params": self._prompt(text)})
        while until not in json.dumps(self._receive().get("params", {}).get("update", {}).get("content", "")):
            pass

    def _prompt(self, text: str) -> dict[str, Any]:
        return {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self._process.stdout.readline())
            if message.get("method") == "session/request_permission":
                self._answer(message)
                continue
            update = message.get("params", {}).get("update", {})
            if update.get("sessionUpdate") != "available_commands_update":  # comes when it likes
                return message

    def _answer(self, message: dict[str, Any]) -> None:
        params = message["params"]
        self.asked.append(json.dumps(params["toolCall"]))
        kind = next(kind for word, kind in self.answers.items() if word in self.asked[-1])
        option = next(option for option in params["options"] if option["kind"] == kind)
        chosen = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        self._send({"id": message["id"], "result": chosen})
