"""Lifecycle and sessions, on the real `dragoman acp`."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import HELLO, Editor, Message, turns

versions = pytest.mark.parametrize("version", [1, 2])
# What ends by itself here takes many minutes. The promise is two seconds, and is held to where a machine has time.
SECONDS = 30.0
PROMISED = 2.0
in_time = pytest.mark.parametrize(
    "seconds", [pytest.param(SECONDS, id="at all"), pytest.param(PROMISED, id="in time", marks=pytest.mark.slow)]
)
NO_PARAMS = -32602
NO_SESSION = -32002
NOT_NOW = -32600


def sessions(folder: Path) -> list[Path]:
    """What the agent has stored."""
    return list((folder / "home").glob("sessions/*.session"))


def ends(messages: list[Message]) -> list[str]:
    """How turns ended, in whatever was heard."""
    found = [message.get("result", message.get("params", {}).get("update", {})) for message in messages]
    return [one["stopReason"] for one in found if "stopReason" in one]


def until(editor: Editor, fact: Callable[[Message], bool]) -> list[Message]:
    """Read up to the message that is meant."""
    heard = [editor.read()]
    while not fact(heard[-1]):
        assert "error" not in heard[-1], heard[-1]
        heard.append(editor.read())
    return heard


def shows(text: str) -> Callable[[Message], bool]:
    return lambda message: text in json.dumps(message)


# -- hello -------------------------------------------------------------------------------------------------

NO_VERSIONS: list[Any] = [0, -1, "1", 1.5, None, True, [], 2**70]
METHODS = ["authenticate", "logout", "session/new", "session/load", "session/resume", "session/fork", "session/list"]
METHODS += ["session/close", "session/delete", "session/archive", "session/unarchive", "session/status"]
METHODS += ["session/set_title", "session/set_config_option", "session/set_mode", "session/prompt", "_mine", "x"]


@pytest.mark.requirement("C1", "8.5.12")
def test_before_initialize_everything_is_refused_and_nothing_is_done(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        for method in METHODS:
            params = {
                "cwd": str(tmp_path),
                "mcpServers": [],
                "sessionId": "s",
                "prompt": [{"type": "text", "text": "x"}],
            }
            assert editor.error(method, params)["code"] in (NOT_NOW, -32601), method
        assert not (tmp_path / "home").exists()
        assert editor.open().prompt()[-1]["result"]["stopReason"] == "end_turn"


@pytest.mark.requirement("C2")
@versions
def test_a_version_that_is_none_is_refused_with_a_code_and_another_may_follow(version: int, tmp_path: Path) -> None:
    with Editor(tmp_path, version=version) as editor:
        for asked in NO_VERSIONS:
            refused = editor.error("initialize", {**HELLO[version], "protocolVersion": asked})
            assert refused["code"] in (NO_PARAMS, -32022), asked
        editor.open()


@pytest.mark.requirement("C2")
def test_a_later_version_gets_our_latest_and_a_second_initialize_is_refused(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        answer = editor.result("initialize", {**HELLO[1], **HELLO[2], "protocolVersion": 99})
        assert answer["protocolVersion"] == 2
        for hello in HELLO.values():
            assert editor.error("initialize", hello)["code"] == NOT_NOW
        assert editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})["sessionId"]


ODD = [{"mine": {"x": [1]}}, {"session": None, "fs": None}, {"fs": 7, "terminal": "yes"}, None]
# Each in one version, and again in the other when there is time.
ODD_ONCE = [(given, 1 + place % 2) for place, given in enumerate(ODD)]
ODD_AGAIN = [pytest.param(given, 3 - version, marks=pytest.mark.slow) for given, version in ODD_ONCE]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("given", "version"), [*ODD_ONCE, *ODD_AGAIN])
def test_capabilities_that_nobody_knows_are_ignored(version: int, given: Any, tmp_path: Path) -> None:
    with Editor(tmp_path, version=version) as editor:
        editor.open(**{"clientCapabilities" if version == 1 else "capabilities": given})
        assert editor.prompt()


# -- sessions that are not ours ----------------------------------------------------------------------------------


@pytest.mark.requirement("C4")
@versions
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
        assert editor.session == foreign  # and nobody's now
        assert editor.error("session/prompt", editor.words("x"))["code"] == NO_SESSION
    assert not (tmp_path / "mark").exists()


def open_another(editor: Editor) -> str:
    """A session beside the first."""
    answer = editor.ask("session/new", {"cwd": str(editor.folder), "mcpServers": []})[-1]
    return str(answer["result"]["sessionId"])


# -- cancelling and leaving --------------------------------------------------------------------------------

SLEEP = [{"call": "bash", "input": {"command": "echo awake; sleep 1000"}}]
PHASES: dict[str, tuple[str, list[Any], str]] = {
    "model": ("full", [{"say": "awake"}, {"say": "never", "delay_ms": 600_000}], "awake"),
    "tool": ("full", SLEEP, "echo awake; sleep 1000"),
    "permission": ("ask", SLEEP, "session/request_permission"),
}


@pytest.mark.requirement("C6", "C7")
@in_time
@versions
def test_a_turn_is_cancelled_once_in_every_phase(version: int, seconds: float, tmp_path: Path) -> None:
    rounds = [(phase, cancels) for cancels in (1, 1000) for phase in PHASES]
    script = turns(*(turn for phase, _ in rounds for turn in (PHASES[phase][1], [{"say": "after"}])))
    with Editor(tmp_path, script, version=version) as editor:
        editor.open()
        for phase, cancels in rounds:
            mode, _, sign = PHASES[phase]
            editor.ask("session/set_config_option", {"sessionId": editor.session, "configId": "mode", "value": mode})
            heard = cancelled_and_prompted_again(editor, sign, cancels, seconds)
            assert ends(heard) == ["cancelled", "end_turn"], (phase, cancels)
            assert shows("after")(heard[-2])


def cancelled_and_prompted_again(editor: Editor, sign: str, cancels: int, seconds: float) -> list[Message]:
    """What was heard of a turn that is cancelled so many times when it shows the sign, and of the next one."""
    cancel = {"method": "session/cancel", "params": {"sessionId": editor.session}}
    editor.send(cancel)  # before: no turn, no effect
    editor.send({"id": 99, "method": "session/prompt", "params": editor.words("go")})
    heard = until(editor, shows(sign))
    began = time.monotonic()
    for _ in range(cancels):
        editor.send(cancel)
    heard += until(editor, lambda message: bool(ends([message])))
    assert time.monotonic() - began < seconds
    editor.send(cancel)  # after: no effect either
    # An answer to a question that was withdrawn is late, and nothing.
    for message in heard:
        if message.get("method") == "session/request_permission":
            chosen = {"outcome": "selected", "optionId": "allow_once"}
            editor.send({"id": message["id"], "result": {"outcome": chosen}})
    heard += (answer := editor.ask("session/prompt", editor.words("again")))
    assert "error" not in answer[-1], answer
    heard += until(editor, lambda message: bool(ends([message]))) if not ends(answer) else []
    return heard


@pytest.mark.requirement("C8")
@in_time
@versions
def test_leaving_in_mid_turn_ends_the_work_and_the_session_can_be_resumed(
    version: int, seconds: float, tmp_path: Path
) -> None:
    steps = [{"call": "bash", "input": {"command": "echo $$ > pid; setsid sleep 1000 & sleep 1000"}}]
    mark = {"PROOF_OF_LEAVING": str(tmp_path)}
    with Editor(tmp_path, turns(steps), "--mode", "full", version=version, env=mark) as editor:
        closed = editor.open().session
        shell = at_work(editor)
        began = time.monotonic()
        editor.send({"id": 100, "method": "session/close", "params": {"sessionId": closed}})
        heard = until(editor, lambda message: message.get("id") == 100)
        assert (ends(heard), heard[-1]["result"]) == (["cancelled"], {})
        gone(editor, shell)
        assert time.monotonic() - began < seconds

        left = editor.session = open_another(editor)
        shell = at_work(editor)
        began = time.monotonic()
        assert editor.leave()[0] == 0
        gone(editor, shell)
        assert time.monotonic() - began < seconds
    with Editor(tmp_path, version=version) as again:
        again.result("initialize", HELLO[version])
        for again.session in (closed, left):
            where = {"sessionId": again.session, "cwd": str(tmp_path), "mcpServers": []}
            assert "result" in again.ask("session/resume", where)[-1]
            assert shows("Hello.")(again.prompt()[-2])


def at_work(editor: Editor) -> int:
    """A turn whose command runs; the process of its shell."""
    file = editor.folder / "pid"
    file.unlink(missing_ok=True)
    editor.send({"id": 99, "method": "session/prompt", "params": editor.words("go")})
    wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def gone(editor: Editor, shell: int) -> None:
    """The shell and everything that it has started."""
    wait_for(lambda: living_of(editor.folder, but=editor.process.pid) == [])
    assert not Path(f"/proc/{shell}").exists()


def living_of(folder: Path, but: int) -> list[int]:
    """Processes that our agent has started: bash and its children, not its guardian."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            is_ours = f"PROOF_OF_LEAVING={folder}".encode() in Path(f"/proc/{name}/environ").read_bytes()
            if is_ours and int(name) != but and b"guardian" not in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def wait_for(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not fact():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.01)  # between two looks, never instead of one


# -- folders ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("C9")
@versions
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
@versions
def test_a_link_to_a_folder_is_that_folder(version: int, tmp_path: Path) -> None:
    """Other than the row: on some systems every temporary folder is reached through a link."""
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
@versions
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


# -- limits ----------------------------------------------------------------------------------------------------------


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
@versions
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
