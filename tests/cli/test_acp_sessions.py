"""`dragoman acp`: sessions that are not open, folders, many idle sessions, clients that offer nothing."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.acp_messages import NO_PARAMS, PROMISED, SECONDS, ends, open_another, until
from tests.support.editor import HELLO, Editor, Message, turns
from tests.support.versions import both_versions

NO_SESSION = -32002


def sessions(folder: Path) -> list[Path]:
    """What the agent has stored."""
    return list((folder / "home").glob("sessions/*.session"))


@pytest.mark.requirement("C4")
@both_versions
def test_a_prompt_to_a_session_that_is_not_open_starts_nothing(version: int, tmp_path: Path) -> None:
    marks = turns([{"call": "write_file", "input": {"path": "mark", "content": "x"}}])
    with Editor(tmp_path, marks, "--mode", "full", version=version) as editor:
        closed = editor.open().session
        deleted = open_another(editor)
        editor.result("session/close", {"sessionId": closed})
        editor.result("session/delete", {"sessionId": deleted})
        with Editor(tmp_path, marks, version=version) as other:
            foreign = other.open().session
            for editor.session in ("sess_0", closed, deleted, foreign):
                assert editor.error("session/prompt", editor.words("x"))["code"] == NO_SESSION, editor.session
        assert editor.session == foreign  # and without a holder now
        assert editor.error("session/prompt", editor.words("x"))["code"] == NO_SESSION
    assert not (tmp_path / "mark").exists()


@pytest.mark.requirement("C9")
@both_versions
def test_what_is_no_folder_is_refused_and_nothing_is_created(version: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "to file").symlink_to(tmp_path / "file")
    names = ("nowhere", "file", "dangling", "to file", "x" * 10_000, "x/" * 5_000, "nul\0", "\ud800")
    bad: list[Any] = ["", ".", "relative", 7, None, *(f"{tmp_path}/{name}" for name in names)]
    with Editor(tmp_path, version=version) as editor:
        editor.result("initialize", HELLO[version])
        for cwd in bad:
            assert editor.error("session/new", {"cwd": cwd, "mcpServers": []})["code"] == NO_PARAMS, cwd
            if cwd is not None:
                extra = {"cwd": str(tmp_path), "mcpServers": [], "additionalDirectories": [cwd]}
                assert editor.error("session/new", extra)["code"] == NO_PARAMS, cwd
        assert editor.error("session/new", {"mcpServers": []})["code"] == NO_PARAMS
        assert sessions(tmp_path) == []
        assert editor.result("session/list", {}) == {"sessions": []}


@pytest.mark.requirement("C9")
@both_versions
def test_a_link_to_a_folder_is_that_folder(version: int, tmp_path: Path) -> None:
    """On some systems every temporary folder is reached through a link."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    steps = [{"call": "write_file", "input": {"path": "new.txt", "content": "x"}}]
    with Editor(tmp_path, turns(steps), "--mode", "full", version=version) as editor:
        editor.result("initialize", HELLO[version])
        editor.session = editor.ask("session/new", {"cwd": str(link), "mcpServers": []})[-1]["result"]["sessionId"]
        editor.prompt()
        assert (real / "new.txt").read_text() == "x"
        editor.result("session/close", {"sessionId": editor.session})
        where = {"sessionId": editor.session, "cwd": str(real), "mcpServers": []}
        assert "result" in editor.ask("session/resume", where)[-1]


@pytest.mark.requirement("C10")
@both_versions
def test_another_folder_is_refused_and_old_roots_are_not_kept(version: int, tmp_path: Path) -> None:
    work, extra, other = tmp_path / "work", tmp_path / "extra", tmp_path / "other"
    for folder in (work, extra, other):
        folder.mkdir()
    (extra / "secret").write_text("seen")
    script = turns([{"call": "read_file", "input": {"path": str(extra / "secret")}}])
    where: Message = {"cwd": str(work), "mcpServers": []}
    with Editor(tmp_path, script, version=version) as editor:
        editor.result("initialize", HELLO[version])
        opened = editor.ask("session/new", {**where, "additionalDirectories": [str(extra)]})
        where["sessionId"] = editor.session = opened[-1]["result"]["sessionId"]
        assert '"completed"' in json.dumps(editor.prompt())
        for again in ("open", "closed"):
            for bad in ({"cwd": str(other)}, {"additionalDirectories": [str(tmp_path / "no")]}):
                assert editor.error("session/resume", {**where, **bad})["code"] == NO_PARAMS, (again, bad)
            if again == "open":
                editor.ask("session/close", {"sessionId": editor.session})
        assert "result" in editor.ask("session/resume", where)[-1]
        heard = json.dumps(editor.prompt())
        assert ('"failed"' in heard, '"completed"' in heard) == (True, False)


def many(folder: Path, count: int, seconds: float) -> None:
    with Editor(folder, version=2) as editor:
        editor.result("initialize", HELLO[2])
        opened = {open_one(editor, folder) for _ in range(50)}
        before = memory(editor)
        opened |= {open_one(editor, folder) for _ in range(count)}
        assert (memory(editor) - before) / count < 64
        listed: list[str] = []
        cursor: Message | None = {}
        pages = 0
        while cursor is not None:
            page = editor.result("session/list", cursor)
            listed += [one["sessionId"] for one in page["sessions"]]
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
            pages += 1
        assert (len(listed), set(listed)) == (count + 50, opened)
        assert pages > count // 100
        editor.session = listed[0]
        assert editor.prompt()
        began = time.monotonic()
        assert editor.leave() == (0, b"", b"")
        assert time.monotonic() - began < seconds


def open_one(editor: Editor, folder: Path) -> str:
    return str(editor.result("session/new", {"cwd": str(folder), "mcpServers": []})["sessionId"])


def memory(editor: Editor) -> int:
    """KiB of the agent."""
    status = Path(f"/proc/{editor.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@pytest.mark.requirement("C12")
def test_idle_sessions_cost_little_and_are_listed_page_by_page(tmp_path: Path) -> None:
    many(tmp_path, 200, SECONDS)


@pytest.mark.requirement("C12")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_thousand_idle_sessions_cost_little(tmp_path: Path) -> None:
    many(tmp_path, 10_000, PROMISED)


@pytest.mark.requirement("C13")
@both_versions
def test_a_client_that_lends_nothing_is_asked_for_nothing(version: int, tmp_path: Path) -> None:
    inputs = {
        "write_file": {"path": "a", "content": "x"},
        "read_file": {"path": "a"},
        "bash": {"command": "echo x"},
    }
    steps = [{"call": name, "input": given} for name, given in inputs.items()]
    with Editor(tmp_path, turns(steps), "--mode", "full", version=version) as editor:
        editor.open()
        heard = editor.ask("session/prompt", editor.words("go"))
        heard += until(editor, lambda message: bool(ends([message]))) if version == 2 else []
    assert {message["method"] for message in heard if "method" in message} == {"session/update"}
    assert json.dumps(heard).count('"completed"') == 3
