"""A store in trouble, seen through the real `dragoman acp`: full, read-only, damaged, of another user.

Each time: a coded error, other sessions unharmed, nothing lost without a word, and it works again when the cause is
gone.
"""

import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.drawn_session import Item, Picture, Words, check_kept
from tests.support.editor import HELLO, Editor, Message, turns
from tests.support.versions import both_versions, mostly_v1, mostly_v2

NOTICES: Message = {"clientCapabilities": {"session": {"notices": {}}}}
SCRIPT = turns([{"say": "word ", "repeat": 3}])
LONG = turns([{"say": "x" * 1000, "repeat": 600}], [{"say": "fine"}])


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of two mebibytes."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this test needs the right to mount a tmpfs")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def fill(disk: Path, leave: int = 0) -> None:
    with (disk / "ballast").open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass  # there is no space left
        file.truncate(file.tell() - leave)


def new(editor: Editor) -> Message:
    """The answer to `session/new`, whatever it is."""
    return editor.ask("session/new", {"cwd": str(editor.folder), "mcpServers": []})[-1]


def load(editor: Editor, session: str) -> list[Message]:
    where: Message = {"sessionId": session, "cwd": str(editor.folder), "mcpServers": []}
    if editor.version == 2:
        return editor.ask("session/resume", {**where, "replayFrom": {"type": "start"}})
    return editor.ask("session/load", where)


def greeted(editor: Editor) -> Editor:
    editor.result("initialize", {**HELLO[editor.version], **(NOTICES if editor.version == 1 else {})})
    return editor


def error_of(answer: Message) -> tuple[int, Any]:
    return answer["error"]["code"], answer["error"]["data"]["reason"]


def failure(end: Message) -> tuple[int, Any, str]:
    """How a turn failed: in the answer in v1, in the idle state in v2."""
    error = end["error"]
    return error["code"], error["data"]["reason"], error["message"]


def drawn(messages: list[Message]) -> list[Item]:
    picture = Picture()
    for message in messages:
        update = message["params"]["update"] if message.get("method") == "session/update" else message
        if "sessionUpdate" in update:
            picture.hear(update)
    return picture.drawn()


def texts(messages: list[Message]) -> list[str]:
    return [item.text for item in drawn(messages) if isinstance(item, Words)]


def listed(editor: Editor) -> set[str]:
    return {one["sessionId"] for one in editor.result("session/list", {})["sessions"]}


# -- the disk --------------------------------------------------------------------------------------------------------


@both_versions
def test_a_full_disk_is_told_and_what_was_seen_stays(version: int, small_disk: Path, tmp_path: Path) -> None:
    env = {"DRAGOMAN_HOME": str(small_disk / "home")}
    with Editor(tmp_path, LONG, version=version, env=env) as editor:
        greeted(editor)
        first, second = (new(editor)["result"]["sessionId"] for _ in range(2))
        fill(small_disk, leave=200_000)
        editor.session = first
        heard = editor.prompt("does not fit")
        assert failure(heard[-1]) == (-32603, "store", "The session cannot be saved: the disk is full")
        fill(small_disk)
        assert error_of(new(editor)) == (-32603, "store")
        (small_disk / "ballast").unlink()
        assert listed(editor) == {first, second}
        assert texts(editor.prompt("again"))[-1] == "fine"
        editor.session = second
        assert len(texts(editor.prompt("and here"))[-1]) == 600_000
        editor.ask("session/close", {"sessionId": first})
        found = [item for item in drawn(load(editor, first)) if not is_prompt(item)]
        check_kept([item for item in drawn(heard) if not is_prompt(item)], found)
        assert isinstance(found[-1], Words) and found[-1].text == "fine"


def is_prompt(item: Item) -> bool:
    return isinstance(item, Words) and item.role == "user_message"


@mostly_v1
def test_a_read_only_store_is_told_and_can_be_read(version: int, small_disk: Path, tmp_path: Path) -> None:
    env = {"DRAGOMAN_HOME": str(small_disk / "home")}
    with Editor(tmp_path, SCRIPT, version=version, env=env) as editor:
        session = editor.open().session
        editor.prompt()
    remount(small_disk, "ro")
    try:
        with Editor(tmp_path, SCRIPT, version=version, env=env) as editor:
            greeted(editor)
            assert error_of(new(editor)) == (-32603, "store")
            assert error_of(load(editor, session)[-1]) == (-32603, "store")
            remount(small_disk, "rw")
            assert texts(load(editor, session)) == ["hi", "word word word "]
            editor.session = new(editor)["result"]["sessionId"]
            assert texts(editor.prompt())[-1] == "word word word "
    finally:
        remount(small_disk, "rw")


@mostly_v2
def test_a_file_where_the_store_should_be_is_told(version: int, tmp_path: Path) -> None:
    place = tmp_path / "home" / "sessions"
    place.parent.mkdir()
    place.write_text("mine")
    with Editor(tmp_path, SCRIPT, version=version) as editor:
        greeted(editor)
        assert error_of(new(editor)) == (-32603, "store")
        assert place.read_text() == "mine"
        place.unlink()
        editor.session = new(editor)["result"]["sessionId"]
        assert texts(editor.prompt())[-1] == "word word word "


# -- one session's file ----------------------------------------------------------------------------------------------


# Of a long session: many enough for a file of many pages.
TURNS = 20


class Past:
    """Sessions that were lived before, in one store. Each test that harms some takes its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "home" / "sessions"
        with self.editor(1) as editor:
            self._long = [live(editor, prompts=TURNS) for _ in range(4)]
            self._short = [live(editor) for _ in range(9)]
        for file in self.store.glob("*.session"):  # an agent in a hurry leaves journals, which mend what tests harm
            with closing(sqlite3.connect(file)) as left:
                left.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.whole = self._long.pop(), self._short.pop()

    def editor(self, version: int) -> Editor:
        return greeted(Editor(self.folder, SCRIPT, version=version))

    def damaged(self) -> str:
        """A long one, of whose file half is lost."""
        session = self._long.pop()
        content = self.file(session).read_bytes()
        self.file(session).write_bytes(content[: len(content) // 2 // 4096 * 4096])
        return session

    def taken(self, count: int) -> list[str]:
        """So many short ones."""
        return [self._short.pop() for _ in range(count)]

    def file(self, session: str) -> Path:
        return self.store / f"{session}.session"


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("past"))


def live(editor: Editor, *, prompts: int = 1) -> str:
    editor.session = new(editor)["result"]["sessionId"]
    for number in range(prompts):
        editor.prompt(f"{number} " + "x" * 1000)
    return editor.session


def notices(messages: list[Message]) -> list[tuple[int, str]]:
    """Where they stand, and their words."""
    updates = [message.get("params", {}).get("update", {}) for message in messages]
    return [(at, one["title"]) for at, one in enumerate(updates) if one.get("sessionUpdate") == "notice"]


@both_versions
def test_what_was_lost_of_a_damaged_session_is_told_once_behind_its_story(version: int, past: Past) -> None:
    damaged = past.damaged()
    with past.editor(version) as editor:
        heard = load(editor, damaged)
        ((place, words),) = notices(heard)
        assert words.startswith("The session's file was damaged; the log is kept up to entry ")
        # Behind the story; in v2 the state is the last word before the answer.
        assert place == len(heard) - version - 1
        found = texts(heard)
        assert 2 <= len(found) < 2 * TURNS
        story = [word for number in range(TURNS) for word in (str(number), "word")]
        assert [text.split()[0] for text in found] == story[: len(found)]
        editor.session = damaged
        assert texts(editor.prompt())[-1] == "word word word "
        editor.ask("session/close", {"sessionId": damaged})
        assert notices(load(editor, damaged)) == []
        assert len(texts(load(editor, past.whole[0]))) == 2 * TURNS
        assert past.file(damaged).with_suffix(".session.damaged").exists()
        # And for those whose client shows no notices.
        complaint = f"dragoman: session {damaged}: {words[:1].lower()}{words[1:]}\n"
        assert editor.leave() == (0, b"", complaint.encode())


def test_a_client_that_resumes_without_a_replay_hears_of_the_damage_too(past: Past) -> None:
    damaged = past.damaged()
    with past.editor(2) as editor:
        heard = editor.ask("session/resume", {"sessionId": damaged, "cwd": str(past.folder)})
        assert [place for place, _ in notices(heard)] == [0]
        assert editor.leave()[2].startswith(b"dragoman: session ")


@mostly_v1
def test_a_file_that_is_no_session_is_told_and_harms_no_other(version: int, past: Past) -> None:
    broken, whole = past.taken(4), past.whole[1]
    garbage, nothing, folder, another = files = [past.file(session) for session in broken]
    contents = [file.read_bytes() for file in files]
    garbage.write_bytes(b"\x07" * len(contents[0]))
    nothing.write_bytes(b"")
    folder.unlink()
    folder.mkdir()
    shutil.copy(past.file(whole), another)
    with past.editor(version) as editor:
        for session in broken:
            assert error_of(load(editor, session)[-1]) == (-32603, "damaged")
        assert len(texts(load(editor, whole))) == 2
        editor.session = new(editor)["result"]["sessionId"]
        assert texts(editor.prompt())[-1] == "word word word "
        assert {whole, editor.session} <= listed(editor)
        folder.rmdir()
        for session, file, content in zip(broken, files, contents, strict=True):
            file.unlink(missing_ok=True)
            file.write_bytes(content)
            assert len(texts(load(editor, session))) == 2


@mostly_v2
def test_a_file_taken_away_under_a_running_session_is_noticed(version: int, tmp_path: Path) -> None:
    with Editor(tmp_path, SCRIPT, version=version) as editor:
        editor.open()
        editor.prompt()
        (tmp_path / "home" / "sessions" / f"{editor.session}.session").unlink()
        assert failure(editor.prompt()[-1])[:2] == (-32603, "store")
        editor.session = new(editor)["result"]["sessionId"]
        assert texts(editor.prompt())[-1] == "word word word "


# -- two at once -----------------------------------------------------------------------------------------------------


@mostly_v1
def test_two_processes_share_the_store_and_not_a_session(version: int, tmp_path: Path) -> None:
    held = (-32600, "held")
    with Editor(tmp_path, SCRIPT, version=version) as one, Editor(tmp_path, SCRIPT, version=3 - version) as other:
        for editor in (one, other):
            greeted(editor)
            editor.session = new(editor)["result"]["sessionId"]
        for editor, theirs in ((one, other.session), (other, one.session)):
            assert listed(editor) == {one.session, other.session}
            assert error_of(load(editor, theirs)[-1]) == held
            assert error_of(editor.ask("session/delete", {"sessionId": theirs})[-1]) == held
            assert error_of(editor.ask("session/set_title", {"sessionId": theirs, "title": "mine"})[-1]) == held
        for _ in range(3):
            assert texts(one.prompt())[-1] == texts(other.prompt())[-1] == "word word word "
        one.ask("session/close", {"sessionId": one.session})
        assert len(texts(load(other, one.session))) == 6
        assert error_of(load(one, one.session)[-1]) == held
