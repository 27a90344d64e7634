"""What our agent asks of the files and terminals that a client lends. The answers are judged afterwards.

The files are made in the folder of the session, and beside it, before anything is asked about them.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.conformance.connection import Message

if TYPE_CHECKING:
    from dragoman.conformance.clients.script import ScenarioAgent, ScriptedPrompt

TEXT: Final = "first\nsecond: ÄÖ 漢字 🙂\nthird\n"
WRITTEN: Final = "written by the agent of dragoman check: ÄÖ 🙂\n"
SECRET: Final = "outside of the session's folder\n"
LIMIT_BYTES: Final = 8
# What a command of a terminal is given, and prints.
VARIABLE: Final = "LENT_BY_CHECK"
_SLEEP: Final = "import time; print('up', flush=True); time.sleep(60)"


class LentFolder:
    """The folder of a session and the places beside it that rows are about."""

    def __init__(self, session_folder: str) -> None:
        root = Path(session_folder)
        self.readable: Final = root / "dragoman-check-read.txt"
        self.existing: Final = root / "dragoman-check-existing.txt"
        self.created: Final = root / "dragoman-check-created.txt"
        self.missing: Final = root / "dragoman-check-missing.txt"
        self.link: Final = root / "dragoman-check-link.txt"
        self.outside: Final = root.parent / f"{root.name}-outside"
        self.secret: Final = self.outside / "secret.txt"
        self.target: Final = self.outside / "target.txt"
        self.linked: Final = self.outside / "linked.txt"

    def make(self) -> None:
        """Make the files."""
        self.outside.mkdir(exist_ok=True)
        self.readable.write_text(TEXT, encoding="utf-8")
        self.existing.write_text("old\n", encoding="utf-8")
        self.secret.write_text(SECRET, encoding="utf-8")
        self.linked.write_text(SECRET, encoding="utf-8")
        for file in (self.created, self.target):
            file.unlink(missing_ok=True)
        if not self.link.is_symlink():
            self.link.symlink_to(self.linked)


async def play_files(agent: "ScenarioAgent", prompt: "ScriptedPrompt") -> None:
    """Read and write what is in the folder of the session, and what is not."""
    folder = LentFolder(agent.sessions[prompt.session])
    folder.make()

    async def read(name: str, path: Any, *, session: str = prompt.session, **more: Any) -> None:
        params = {"sessionId": session, "path": str(path), **more}
        await agent.ask(name, "fs/read_text_file", params, seconds=agent.limits.turn)

    async def write(name: str, path: Any) -> None:
        params = {"sessionId": prompt.session, "path": str(path), "content": WRITTEN}
        await agent.ask(name, "fs/write_text_file", params, seconds=agent.limits.turn)

    await read("read", folder.readable)
    await read("read_line", folder.readable, line=2, limit=1)
    await read("read_missing", folder.missing)
    await read("read_relative", folder.readable.name)
    await read("read_outside", folder.secret)
    await read("read_for_another", folder.readable, session="no-such-session")
    await write("write", folder.existing)
    await write("create", folder.created)
    await write("write_outside", folder.target)
    await write("write_link", folder.link)
    agent.answers["files"] = {
        "existing": _text_of(folder.existing),
        "created": _text_of(folder.created),
        "target": _text_of(folder.target),
        "linked": _text_of(folder.linked),
    }


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


async def play_terminals(agent: "ScenarioAgent", prompt: "ScriptedPrompt") -> None:
    """Run commands in terminals of the client."""
    terminals = _Terminals(agent, prompt.session)
    await terminals.run(
        "short",
        "import sys; sys.stdout.write('|'.join(sys.argv[1:])); sys.stdout.flush(); sys.exit(3)",
        args=["a b; echo c", "$HOME", ""],
    )
    cwd = os.path.join(agent.sessions[prompt.session], "dragoman-check-sub")
    os.makedirs(cwd, exist_ok=True)
    code = f"import os; print(os.environ.get('{VARIABLE}'), os.getcwd())"
    await terminals.run("place", code, cwd=cwd, env=[{"name": VARIABLE, "value": "lent"}])
    # Two bytes a character: a limit that is not even would tear one.
    await terminals.run("limited", "print('x' * 30 + 'Ä' * 20, end='')", outputByteLimit=LIMIT_BYTES + 1)
    await terminals.play_long()
    await agent.ask("unknown_terminal", "terminal/output", terminals.params("no-such-terminal"))


class _Terminals:
    def __init__(self, agent: "ScenarioAgent", session: str) -> None:
        self._agent: Final = agent
        self._session: Final = session

    def params(self, terminal: str) -> Message:
        return {"sessionId": self._session, "terminalId": terminal}

    async def ask(self, name: str, method: str, terminal: str) -> Message | None:
        return await self._agent.ask(name, method, self.params(terminal))

    async def create(self, name: str, code: str, args: list[str] | None = None, **more: Any) -> str:
        """Start a command; return the id of its terminal, or nothing."""
        params = {"sessionId": self._session, "command": sys.executable, "args": ["-I", "-c", code, *(args or [])]}
        seconds = self._agent.limits.turn
        answer = await self._agent.ask(f"{name}_create", "terminal/create", {**params, **more}, seconds=seconds)
        return str(result_of(answer).get("terminalId", ""))

    async def run(self, name: str, code: str, args: list[str] | None = None, **more: Any) -> None:
        """Run a command to its end, read what it printed, and release its terminal."""
        id = await self.create(name, code, args, **more)
        if id:
            await self._agent.ask(
                f"{name}_exit", "terminal/wait_for_exit", self.params(id), seconds=self._agent.limits.turn
            )
            await self.ask(f"{name}_output", "terminal/output", id)
            await self.ask(f"{name}_release", "terminal/release", id)

    async def play_long(self) -> None:
        """Kill one command, and release another that still runs."""
        id = await self.create("killed", _SLEEP)
        if id:
            await self.ask("killed_kill", "terminal/kill", id)
            await self.ask("killed_exit", "terminal/wait_for_exit", id)
            await self.ask("killed_output", "terminal/output", id)
        mark = os.path.join(self._agent.sessions[self._session], "dragoman-check-pid")
        noted = f"open({mark!r} + '.new', 'w').write(str(os.getpid())); os.rename({mark!r} + '.new', {mark!r})"
        code = f"import os; {noted}; {_SLEEP}"
        id = await self.create("released", code)
        if id:
            await self._until_running(mark)
            await self.ask("released_release", "terminal/release", id)
            await self.ask("released_output", "terminal/output", id)
            self._agent.answers["released_process"] = {"lives": await self._lives(mark)}

    async def _until_running(self, mark: str) -> None:
        await self._poll(lambda: os.path.exists(mark))

    async def _lives(self, mark: str) -> bool:
        """Return whether the process of a mark still lives after a while."""
        try:
            pid = int(Path(mark).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return False
        return not await self._poll(lambda: not _is_running(pid))

    async def _poll(self, holds: Any) -> bool:
        import asyncio
        import time

        deadline = time.monotonic() + self._agent.limits.exit
        while not holds():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True


def _is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not reaped does not."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except (OSError, IndexError):
        return os.path.isdir("/proc/self") is False


def result_of(answer: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the result of an answer; empty if it is an error, null, or did not come."""
    result = answer.get("result") if answer is not None else None
    return result if isinstance(result, dict) else {}
