"""`dragoman acp --resume [ID]`: the first new session goes on with a stored one, if that can be; else it is fresh."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.drawn_session import Picture, Words
from tests.support.editor import HELLO, PATIENCE_SECONDS, Editor, Message, turns
from tests.support.versions import both_versions, mostly_v1, mostly_v2, slow

MIB = 1024 * 1024
MISSING = "sess_0123456789abcdef0123456789abcdef"


class Past(NamedTuple):
    """Sessions that were lived before, in two folders."""

    home: Path
    work: Path
    elsewhere: Path
    older: str
    newer: str
    other: str
    long: str

    def editor(self, folder: Path, *options: str, version: int) -> Editor:
        """A new process, with a copy of the sessions."""
        shutil.copytree(self.home, folder / "home", ignore=shutil.ignore_patterns("holders"))
        return Editor(folder, turns([{"say": "now"}]), *options, version=version)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("past")
    work, elsewhere = folder / "work", folder / "elsewhere"
    work.mkdir()
    elsewhere.mkdir()
    found = {}
    with Editor(folder, turns([{"think": "hm"}, {"say": "then"}])) as editor:
        editor.result("initialize", HELLO[1])
        for name, cwd in {"older": work, "newer": work, "other": elsewhere}.items():
            editor.session = found[name] = new(editor, cwd)[-1]["result"]["sessionId"]
            editor.prompt(name)
        # The last word in `work` is spoken in `newer`.
    piece = {"say": "x" * 16384, "repeat": MIB // 16384}
    with Editor(folder, turns([piece])) as editor:
        editor.result("initialize", HELLO[1])
        editor.session = found["long"] = new(editor, elsewhere)[-1]["result"]["sessionId"]
        for number in range(7):
            editor.prompt(f"prompt {number}")
    return Past(folder / "home", work, elsewhere, **found)


def new(editor: Editor, cwd: Path) -> list[Message]:
    return editor.ask("session/new", {"cwd": str(cwd), "mcpServers": []})


def resumed(editor: Editor, cwd: Path) -> str:
    """The id of the first session: everything else comes behind the answer that tells it."""
    editor.result("initialize", HELLO[editor.version])
    (answer,) = new(editor, cwd)
    editor.session = answer["result"]["sessionId"]
    return editor.session


def texts(heard: list[Message]) -> list[tuple[str, str]]:
    """Who said what, in updates."""
    picture = Picture()
    for update in heard:
        if "sessionUpdate" in update:
            picture.hear(update)
    return [(item.role, item.text) for item in picture.drawn() if isinstance(item, Words)]


def story(name: str) -> list[tuple[str, str]]:
    return [("user_message", name), ("agent_thought", "hm"), ("agent_message", "then")]


def turn(version: int) -> list[tuple[str, str]]:
    """v1 does not tell a prompt to who has just said it."""
    return [("user_message", "hi")] * (version - 1) + [("agent_message", "now")]


def until_idle(editor: Editor) -> Iterator[Message]:
    """v2: what is told until the session says that it is idle."""
    state = ""
    while state != "idle":
        update: Message = editor.read()["params"]["update"]
        state = update.get("state", "")
        yield update


@pytest.mark.parametrize(
    ("version", "named"),
    [(1, False), pytest.param(1, True, marks=slow), pytest.param(2, False, marks=slow), (2, True)],
    ids=["v1, the newest of the folder", "v1, a named one", "v2, the newest of the folder", "v2, a named one"],
)
def test_the_story_comes_behind_the_answer_and_before_the_next_turn(
    version: int, named: bool, past: Past, tmp_path: Path
) -> None:
    wanted = past.older if named else past.newer
    with past.editor(tmp_path, "--resume", *([wanted] if named else []), version=version) as editor:
        assert resumed(editor, past.work) == wanted
        replayed = list(until_idle(editor)) if version == 2 else []
        heard = [*replayed, *editor.prompt()]
    name = "older" if named else "newer"
    assert texts(heard) == [*story(name), *turn(version)]
    titles = [update["title"] for update in heard if update.get("sessionUpdate") == "session_info_update"]
    assert titles == [name]


@mostly_v1
def test_only_the_first_new_session_is_an_old_one(version: int, past: Past, tmp_path: Path) -> None:
    with past.editor(tmp_path, "--resume", past.newer, version=version) as editor:
        assert resumed(editor, past.work) == past.newer
        *_, answer = new(editor, past.work)
        assert answer["result"]["sessionId"] not in past


@pytest.mark.parametrize(
    ("version", "wanted"),
    [(1, MISSING), pytest.param(1, "../other", marks=slow), pytest.param(2, MISSING, marks=slow), (2, "../other")],
)
def test_a_named_session_that_is_not_there_is_refused(version: int, wanted: str, past: Past, tmp_path: Path) -> None:
    with past.editor(tmp_path, f"--resume={wanted}", version=version) as editor:
        assert refused(editor, past.work)["code"] == -32002


def refused(editor: Editor, cwd: Path) -> Message:
    """Ask for a session that is not the named one, twice: the error, which is the same each time."""
    editor.result("initialize", HELLO[editor.version])
    (first,) = new(editor, cwd)
    (second,) = new(editor, cwd)
    assert first["error"] == second["error"]
    error: Message = first["error"]
    return error


@mostly_v1
def test_a_named_session_of_another_folder_is_refused_with_the_folder(version: int, past: Past, tmp_path: Path) -> None:
    with past.editor(tmp_path, "--resume", past.other, version=version) as editor:
        error = refused(editor, past.work)
        assert (error["code"], error["data"]) == (-32602, {"cwd": str(past.elsewhere)})
        assert str(past.elsewhere) in error["message"]
        editor.session = new(editor, past.elsewhere)[-1]["result"]["sessionId"]
        assert editor.session == past.other
        replayed = list(until_idle(editor)) if version == 2 else []
        assert texts([*replayed, *editor.prompt()]) == [*story("other"), *turn(version)]


@mostly_v2
def test_a_named_session_that_another_process_has_open_is_refused(version: int, past: Past, tmp_path: Path) -> None:
    with past.editor(tmp_path, version=2) as holder:
        holder.result("initialize", HELLO[2])
        holder.ask("session/resume", {"sessionId": past.newer, "cwd": str(past.work)})
        with Editor(tmp_path, turns([{"say": "now"}]), "--resume", past.newer, version=version) as editor:
            assert refused(editor, past.work)["data"] == {"reason": "held"}
        holder.session = past.newer
        assert texts(holder.prompt()) == turn(2)


@mostly_v2
def test_a_newest_session_that_another_process_has_open_is_not_taken(version: int, past: Past, tmp_path: Path) -> None:
    with past.editor(tmp_path, version=2) as holder:
        holder.result("initialize", HELLO[2])
        holder.ask("session/resume", {"sessionId": past.newer, "cwd": str(past.work)})
        with Editor(tmp_path, turns([{"say": "now"}]), "--resume", version=version) as editor:
            assert resumed(editor, past.work) not in past
            assert texts(editor.prompt()) == turn(editor.version)


@mostly_v1
def test_a_session_that_cannot_be_read_is_refused_and_the_others_are_unharmed(
    version: int, past: Past, tmp_path: Path
) -> None:
    with past.editor(tmp_path, "--resume", past.newer, version=version) as editor:
        file = tmp_path / "home" / "sessions" / f"{past.newer}.session"
        file.write_bytes(b"\0" * file.stat().st_size)
        assert refused(editor, past.work)["data"] == {"reason": "damaged"}
        request: dict[str, Any] = {"sessionId": past.older, "cwd": str(past.work), "mcpServers": []}
        *_, answer = editor.ask("session/resume", request)
        assert "result" in answer


@mostly_v2
def test_a_folder_in_which_nothing_was_lived_begins_fresh(version: int, past: Past, tmp_path: Path) -> None:
    with past.editor(tmp_path, "--resume", version=version) as editor:
        assert resumed(editor, tmp_path) not in past


# -- a story that takes a while --------------------------------------------------------------------------------------


@both_versions
def test_a_prompt_that_comes_in_the_middle_of_the_story_waits_for_its_end(
    version: int, past: Past, tmp_path: Path
) -> None:
    with past.editor(tmp_path, "--resume", past.long, version=version) as editor:
        resumed(editor, past.elsewhere)
        # More is told than fits between us, so the story cannot have ended yet.
        editor.send({"id": 99, "method": "session/prompt", "params": editor.words("hi")})
        heard: list[Message] = []
        answered = False
        while not answered or heard[-1].get("state") == "running" or "stopReason" not in heard[-1]:
            message = editor.read()
            answered = answered or message.get("id") == 99
            heard.append(message["params"]["update"] if "params" in message else message["result"])
    said = texts(heard)
    assert [role for role, _ in said] == ["user_message", "agent_message"] * 7 + [role for role, _ in turn(version)]
    assert [text for role, text in said if role == "user_message"][:7] == [f"prompt {number}" for number in range(7)]
    assert {len(text) for role, text in said[:14] if role == "agent_message"} == {MIB}
    assert said[14:] == turn(version)
    # How things stand is told of the turn, and once.
    states = [update["state"] for update in heard if "state" in update]
    assert states == ([] if version == 1 else ["running", "idle"])


@mostly_v1
def test_a_session_closed_in_the_middle_of_its_story_is_closed(version: int, past: Past, tmp_path: Path) -> None:
    with past.editor(tmp_path, "--resume", past.long, version=version) as editor:
        resumed(editor, past.elsewhere)
        *told, answer = editor.ask("session/close", {"sessionId": past.long})
        assert answer["result"] == {}
        assert len(texts([message["params"]["update"] for message in told])) < 14
        # It is free: here, and for others.
        with Editor(tmp_path, None, "--resume", past.long, version=version) as other:
            assert resumed(other, past.elsewhere) == past.long
            other.process.kill()
            other.process.wait()
            other.left = True
        request: dict[str, Any] = {"sessionId": past.long, "cwd": str(past.elsewhere), "mcpServers": []}
        *_, answer = editor.ask("session/resume", request)
        assert "result" in answer


@mostly_v2
def test_an_editor_that_leaves_in_the_middle_of_the_story_ends_the_agent(
    version: int, past: Past, tmp_path: Path
) -> None:
    with past.editor(tmp_path, "--resume", past.long, version=version) as editor:
        resumed(editor, past.elsewhere)
        editor.stdin.close()
        assert editor.process.wait(PATIENCE_SECONDS) == 0  # though nothing is read
        assert editor.stderr.read() == b""
        editor.left = True
