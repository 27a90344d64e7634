"""The life of a session whose process is killed again and again, seen by an editor that remembers everything.

Each generation is a `dragoman acp` that loads the session, is asked things, and is killed: after so many messages, or
at the n-th call of its store to SQLite or to the file system. What the next one tells is compared with what was seen.
"""

import asyncio
import json
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.coder import context
from dragoman.store.entries import Entry, EventEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import Idle, UserMessage
from tests.cli.drawn_session import FINAL, Deed, Item, Picture, check_kept, check_true
from tests.support.editor import HELLO, PATIENCE_SECONDS, Editor, Message, turns
from tests.support.needs import ROOT

SCRIPT = turns(
    [
        {"think": "Hm. ", "repeat": 5},
        {"say": "word ", "repeat": 20},
        {"call": "write_file", "input": {"path": "new.txt", "content": "one\ntwo\n"}},
        {"call": "read_file", "input": {"path": "new.txt"}},
        {"call": "read_file", "input": {"path": "given.txt"}},
        {"say": "Both are read. ", "repeat": 3},
    ],
    [
        {"say": "Now a command."},
        {"call": "bash", "input": {"command": "printf one; sleep 0.01; printf two"}},
        {"think": "It ran."},
        {"say": "ok ", "repeat": 10, "delay_ms": 1},
    ],
    [
        {"fail": "rate_limit", "times": 1},
        {"call": "bash", "input": {"command": "echo no; exit 3"}},
        {"call": "write_file", "input": {"path": "last.txt", "content": "the end\n"}},
        {"usage": {"input": 3, "output": 4}},
        {"say": "That was all."},
        {"stop": "max_tokens"},
    ],
)
PROMPTS = ("first of all", "and then", "at last")
# Runs in the agent's process before it.
COUNT = """
import sys
sys.path.append({root!r})
from tests.support.store_processes import die_at
die_at({number})
"""


class Killed(Exception):
    """The agent is no more; everything it has said is read."""


class Life:
    """One session, from its first prompt on. `truth` is what an undisturbed generation tells.

    `first` runs in each of its processes before anything else.
    """

    def __init__(self, folder: Path, truth: list[Item], first: str = "") -> None:
        self.session = ""
        self._home = folder / "home"
        self._work = folder / "work"
        self._work.mkdir(parents=True)
        (self._work / "given.txt").write_text("given\n")
        self._truth = truth
        self._first = first
        self._picture = Picture()
        # What was there when the last generation began to add to it.
        self._base = 0
        # What may be true: what was acknowledged last, and what was asked for since.
        self._titles = {""}
        self._modes = {"full-access"}
        self._wanted_mode = "ask"
        self._generations = 0

    def live(self, version: int, *, messages: int = 0, delay: float = 0, die_at: int = 0) -> bool:
        """One generation; whether it was killed: after so many messages and seconds, or before some call."""
        self._generations += 1
        for name in ("new.txt", "last.txt"):
            (self._work / name).unlink(missing_ok=True)
        env = {"DRAGOMAN_HOME": str(self._home)}
        first = COUNT.format(root=str(ROOT), number=die_at) if die_at else self._first
        with Editor(self._work, SCRIPT, "--mode", "full", version=version, first=first, env=env) as editor:
            generation = _Generation(editor, messages, delay)
            try:
                self._live(generation)
            except Killed:
                editor.left = True
                return True
            code, out, errors = editor.leave()
            assert (out, errors) == (b"", b"")
            assert code in (0, -9)  # with its last message, or while it was leaving
            return code == -9

    def drawn(self) -> list[Item]:
        """What the editor shows."""
        return self._picture.drawn()

    def _live(self, agent: "_Generation") -> None:
        agent.ask("initialize", HELLO[agent.version])
        self._open(agent)
        for number, prompt in enumerate(PROMPTS):
            if number == 1:
                self._set_mode(agent)
            if number == 2 and self._generations % 2:
                self._set_title(agent)
            self._prompt(agent, prompt)

    def _open(self, agent: "_Generation") -> None:
        where: Message = {"cwd": str(self._work), "mcpServers": []}
        if not self.session:
            self.session = agent.ask("session/new", where, self._picture)["sessionId"]
            return
        check_log(self._home / "sessions", self.session)
        loaded = Picture()
        if agent.version == 1:
            answer = agent.ask("session/load", {**where, "sessionId": self.session}, loaded)
            mode = answer["modes"]["currentModeId"]
        else:
            replay = {"replayFrom": {"type": "start"}}
            answer = agent.ask("session/resume", {**where, **replay, "sessionId": self.session}, loaded)
            (mode,) = [one["currentValue"] for one in answer["configOptions"] if one["configId"] == "mode"]
            assert loaded.state == "idle"
        found = loaded.drawn()
        check_kept(self.drawn(), found)
        check_true(found[self._base :], self._truth)
        assert all(item.status in FINAL for item in found if isinstance(item, Deed))
        assert mode in self._modes
        # A title that is heard was set, though the answer may be lost.
        assert loaded.title in self._titles | {self._picture.title}
        self._picture, self._base, self._modes, self._titles = loaded, len(found), {mode}, {loaded.title}
        listed = agent.ask("session/list", {"cwd": str(self._work)}, self._picture)["sessions"]
        (mine,) = [one for one in listed if one["sessionId"] == self.session]
        assert mine.get("title", "") == loaded.title

    def _prompt(self, agent: "_Generation", text: str) -> None:
        prompt = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        if not self._picture.title and self._titles == {""}:
            self._titles = {"", text}
        if agent.version == 1:
            # What is heard of a turn says that the prompt was heard.
            picture = _Behind(self._picture, f"prompt{self._generations}{text}", text)
            agent.ask("session/prompt", prompt, picture)
        else:
            agent.ask("session/prompt", prompt, self._picture)
            self._picture.state = "running"
            while self._picture.state != "idle":
                agent.hear(self._picture)

    def _set_mode(self, agent: "_Generation") -> None:
        mode = self._wanted_mode
        self._modes.add(mode)
        if agent.version == 1:
            agent.ask("session/set_mode", {"sessionId": self.session, "modeId": mode}, self._picture)
        else:
            option = {"sessionId": self.session, "configId": "mode", "type": "id", "value": mode}
            agent.ask("session/set_config_option", option, self._picture)
        self._modes = {mode}
        self._wanted_mode = "ask" if mode == "full-access" else "full-access"

    def _set_title(self, agent: "_Generation") -> None:
        title = f"Title {self._generations}"
        self._titles.add(title)
        agent.ask("session/set_title", {"sessionId": self.session, "title": title}, self._picture)
        self._titles = {title}


class _Behind(Picture):
    """A picture in which a prompt appears with the first thing that is told of its turn."""

    def __init__(self, picture: Picture, message_id: str, text: str) -> None:
        super().__init__()
        self._picture, self._prompt = picture, (message_id, "user_message", text)
        self._begun = False

    def hear(self, update: Message) -> None:
        # What belongs to a request before may be told behind its answer.
        behind = ("session_info_update", "available_commands_update", "config_option_update")
        if not self._begun and update["sessionUpdate"] not in behind:
            self._begun = True
            self._picture.say(*self._prompt)
        self._picture.hear(update)


class _Generation:
    """A process that is talked to until it is killed, by us or by itself."""

    def __init__(self, editor: Editor, messages: int, delay: float) -> None:
        self.version = editor.version
        self._editor = editor
        self._left = messages
        self._delay = delay
        self._calls = 0

    def ask(self, method: str, params: Message, picture: Picture | None = None) -> Any:
        """Ask; what comes before the answer goes into the picture."""
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": params})
        while (message := self.hear(picture)).get("id") != self._calls or "method" in message:
            pass
        assert "error" not in message, message
        return message["result"]

    def hear(self, picture: Picture | None) -> Message:
        """The next message; `Killed` when there is none."""
        line = self._editor.stdout.readline()
        if not line.endswith(b"\n"):  # half a message is none
            errors = self._editor.stderr.read()
            assert (self._editor.process.wait(PATIENCE_SECONDS), errors) == (-9, b""), errors.decode()
            raise Killed
        message: Message = json.loads(line.replace(str(self._editor.folder).encode(), b"."))
        if message.get("method") == "session/update":
            assert picture is not None, message
            picture.hear(message["params"]["update"])
        elif message.get("method") == "session/request_permission":
            chosen = {"outcome": "selected", "optionId": "allow_once"}
            self._send({"id": message["id"], "result": {"outcome": chosen}})
        self._left -= 1
        if self._left == 0:
            time.sleep(self._delay)  # any moment between this message and the next
            self._editor.process.kill()
        return message

    def _send(self, message: Message) -> None:
        try:
            self._editor.send(message)
        except BrokenPipeError:
            pass  # killed: what it said before is still to be read


def whole_truth(folder: Path, version: int) -> list[Item]:
    """What is told undisturbed."""
    life = Life(folder, [])
    assert not life.live(version)
    return life.drawn()


def check_log(folder: Path, session_id: str) -> None:
    """What a kill has left: the model's context is one that every provider takes, and every turn has ended once."""
    copy = folder.parent / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("holders"))
    try:
        entries = asyncio.run(_entries(copy, session_id))
    finally:
        shutil.rmtree(copy)
    waiting: list[str] = []
    for item in context.read(entries):
        if isinstance(item, context.ContextToolResult):
            waiting.remove(item.call_id)
        else:
            assert waiting == []
            waiting = [call.id for call in item.calls] if isinstance(item, context.ContextAssistantMessage) else []
    assert waiting == []
    open_turns = 0
    for entry in entries:
        if isinstance(entry, EventEntry) and isinstance(entry.event, UserMessage):
            assert open_turns == 0
            open_turns = 1
        elif isinstance(entry, EventEntry) and isinstance(entry.event, Idle):
            open_turns -= 1
            assert open_turns == 0


async def _entries(folder: Path, session_id: str) -> list[Entry]:
    store = SqliteStore(folder)
    try:
        return [record.entry async for records in store.read(session_id) for record in records]
    finally:
        await store.close()


def lived(folder: Path, truth: list[Item], seed: int, kills: int, places: Sequence[int] = (), first: str = "") -> int:
    """A life with so many kills, in either version, and then one in each undisturbed. How many were killed.

    They come at moments of chance, or at these calls of the store. `first` is as in `Life`.
    """
    chance = random.Random(seed)
    life = Life(folder, truth, first)
    killed = 0
    for number in range(kills):
        version = chance.choice((1, 2))
        if places:
            killed += life.live(version, die_at=places[number])
        else:
            killed += life.live(version, messages=chance.randrange(1, 130), delay=chance.random() * 0.002)
    for version in (1, 2):
        assert not life.live(version)
    check_log(folder / "home" / "sessions", life.session)
    return killed
