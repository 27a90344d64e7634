"""An editor that says exactly what a test says: raw JSON to a `dragoman acp` of its own, in either framing.

The agent is forked, which is quick; it is started where the start is the point, or what stands in /proc about it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.fork_server.client import MAIN, Forked, fork_server

DRAGOMAN = [sys.executable, "-m", "dragoman.cli.main"]
Message = dict[str, Any]
# A busy machine is not a bug: only an agent that hangs takes longer to end.
PATIENCE_SECONDS = 30

HELLO: dict[int, Message] = {
    1: {"protocolVersion": 1, "clientInfo": {"name": "editor", "version": "1"}, "clientCapabilities": {}},
    2: {"protocolVersion": 2, "info": {"name": "editor", "version": "1"}, "capabilities": {}},
}


class Editor:
    """Leaving the block ends the agent; it must then exit by itself, with nothing left to say."""

    command = "acp"

    def __init__(
        self,
        folder: Path,
        script: Any = None,
        *options: str,
        version: int = 1,
        headers: bool = False,
        python: tuple[str, ...] = (),
        started: bool = False,
        first: str = "",
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """`python` is for its command line, and has it `started` as an editor does, as variables of Python's have.

        `first` is a program of the test's own that runs in the agent's process before it, if that is forked.
        """
        words = [self.command, *self.thinking(folder, script), *options]
        self.folder, self.version, self.headers, self.session = folder, version, headers, ""
        environment = {**self.surroundings(), "DRAGOMAN_HOME": str(folder / "home"), **(env or {})}
        self.process: subprocess.Popen[bytes] | Forked
        if started or python or any(name.startswith("PYTHON") for name in env or ()):
            command = [sys.executable, *python, *DRAGOMAN[1:], *words]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=cwd)
        else:
            self.process = fork_server().child(f"{first}\n{MAIN}", *words, env=environment, cwd=cwd)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self.left = False
        self.commands: list[Message] = []
        self._calls = 0

    def thinking(self, folder: Path, script: Any) -> list[str]:
        """The options that say who thinks: the script."""
        file = folder / "script.json"
        file.write_text(json.dumps(script or turns([{"say": "Hello."}])), encoding="utf-8")
        return ["--model", f"script:{file}"]

    def surroundings(self) -> dict[str, str]:
        """The environment it is started in."""
        return dict(os.environ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self.left:
                assert self.leave() == (0, b"", b"")
        finally:
            self.process.kill()
            self.process.wait()
            for stream in (self.stdin, self.stdout, self.stderr):
                with suppress(BrokenPipeError):  # what a killed agent was still to be told
                    stream.close()

    def leave(self) -> tuple[int, bytes, bytes]:
        """Close stdin; the exit code, and what was still said on stdout, but for commands, and on stderr."""
        self.left = True
        if not self.stdin.closed:
            self.stdin.close()
        with ThreadPoolExecutor(1) as pool:
            errors = pool.submit(self.stderr.read)  # meanwhile: who cannot write there does not end
            try:
                code = self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        lines = [] if self.stdout.closed else self.stdout.readlines()
        said = b"".join(line for line in lines if b'"available_commands_update"' not in line)
        return code, said, errors.result()

    # -- frames ------------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def send(self, message: Message) -> None:
        self.send_body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_body(self, body: bytes) -> None:
        """A message as it is, in its frame."""
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if self.headers else body + b"\n")

    def read(self) -> Message:
        """The next message; the slash commands are put aside: v1 tells them behind the answer that opens a session."""
        while _is_about_commands(message := self.read_any()):
            self.commands = message["params"]["update"]["availableCommands"]
        return message

    def read_any(self) -> Message:
        """The next message. In `Content-Length` it must come with that header, else on a line of its own."""
        if self.headers:
            name, length = self.stdout.readline().split(b": ")
            assert (name, self.stdout.readline()) == (b"Content-Length", b"\r\n")
            message: Message = json.loads(self.stdout.read(int(length)))
        else:
            message = json.loads(self.stdout.readline())
        assert message.pop("jsonrpc") == "2.0"
        return message

    # -- requests ----------------------------------------------------------------------------------------------------

    def ask(self, method: str, params: Any) -> list[Message]:
        """Ask; everything that comes up to the answer, which is the last."""
        self._calls += 1
        self.send({"id": self._calls, "method": method, "params": params})
        heard = [self.read()]
        while "method" in heard[-1]:
            heard.append(self.read())
        assert heard[-1].pop("id") == self._calls
        return heard

    def result(self, method: str, params: Any) -> Any:
        """Ask; the result, when nothing else is said."""
        (answer,) = self.ask(method, params)
        return answer["result"]

    def error(self, method: str, params: Any) -> Any:
        """Ask; the error, when nothing else is said."""
        (answer,) = self.ask(method, params)
        return answer["error"]

    def open(self, **hello: Any) -> Self:
        """Say hello and open a session."""
        self.result("initialize", {**HELLO[self.version], **hello})
        self.session = self.result("session/new", {"cwd": str(self.folder), "mcpServers": []})["sessionId"]
        while self.version == 1 and not self.commands:
            message = self.read_any()
            assert _is_about_commands(message)
            self.commands = message["params"]["update"]["availableCommands"]
        return self

    def prompt(self, text: str = "hi") -> list[Message]:
        """A whole turn: the updates as they came, and its end: the answer in v1, the idle state in v2."""
        heard = self.ask("session/prompt", self.words(text))
        if self.version == 2:
            assert [list(message) for message in heard] == [["result"]]
            heard = [self.read()]
            while heard[-1]["params"]["update"].get("state") != "idle":
                heard.append(self.read())
        return [self._update(message) for message in heard]

    def begin(self, text: str = "hi") -> Message:
        """Begin a turn; what the agent says first."""
        self._calls += 1
        self.send({"id": self._calls, "method": "session/prompt", "params": self.words(text)})
        while "content" not in (message := self._update(self.read())) or message["sessionUpdate"] == "user_message":
            pass
        return message

    def words(self, text: str) -> Message:
        return {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}

    def _update(self, message: Message) -> Message:
        if message.get("method") != "session/update":
            return message
        assert message["params"]["sessionId"] == self.session
        update: Message = message["params"]["update"]
        return update


def _is_about_commands(message: Message) -> bool:
    update = message.get("params", {}).get("update", {}) if message.get("method") == "session/update" else {}
    return bool(update.get("sessionUpdate") == "available_commands_update")


def turns(*steps: list[Any]) -> dict[str, Any]:
    """A script of these turns."""
    return {"turns": [{"steps": turn} for turn in steps]}


def memory(editor: Editor, field: str = "VmHWM") -> int:
    """KiB of the agent: the most it ever had (VmHWM), or what it has (VmRSS)."""
    status = Path(f"/proc/{editor.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(field)).split()[1])


@contextmanager
def closing_by_force(editor: Editor) -> Iterator[Editor]:
    """For an agent that is not going to leave by itself."""
    with editor:
        try:
            yield editor
        finally:
            editor.left = True


def answer_questions(editor: Editor, answer: Any, text: str = "go") -> tuple[list[Message], list[Message]]:
    """A whole turn in which every permission gets this answer: a result, or an error. What was asked, what was told."""
    asked: list[Message] = []
    told: list[Message] = []
    editor.send({"id": 7000, "method": "session/prompt", "params": editor.words(text)})
    while True:
        message = editor.read()
        if message.get("method") == "session/request_permission":
            asked.append(message)
            editor.send({"id": message["id"], **answer(message)})
            continue
        told.append(message)
        if editor.version == 1 and message.get("id") == 7000:
            return asked, told
        if editor.version == 2 and message.get("params", {}).get("update", {}).get("state") == "idle":
            return asked, told
