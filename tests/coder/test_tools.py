"""Tools at work: a real folder, a real shell, a client that watches. Nothing runs that was not approved."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import UNSET

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.coder.changes import Changes
from dragoman.coder.context import ContextToolCall, ContextToolResult
from dragoman.coder.execution import DirectExecution, Start
from dragoman.coder.permissions import Approved, Ask, JudgedCall, Look, PermissionGate
from dragoman.coder.toolbox import Toolbox
from dragoman.coder.tools.bash import Bash
from dragoman.coder.tools.contract import BadInput, Tool, ToolContext, ToolOutcome
from dragoman.coder.tools.files import FILE_BYTES
from dragoman.coder.tools.read import LINE_CHARACTERS, ReadFile
from dragoman.coder.tools.result_text import cut
from dragoman.coder.tools.search import Glob, Grep, ListFiles
from dragoman.coder.tools.web_fetch import WebFetch
from dragoman.coder.tools.write import EditFile, WriteFile
from dragoman.host.guardian import Guardian
from dragoman.host.paths import Roots
from dragoman.permissions.decision import Decision
from dragoman.permissions.rule import PermissionRule
from dragoman.testing import pair
from dragoman.vocabulary.events import AnyEvent, TerminalOutputChunk, TerminalUpdate, ToolCallUpdate
from dragoman.vocabulary.services import ReadTextFile, WriteTextFile
from dragoman.vocabulary.tools import FINAL_STATUSES, Diff, ExitStatus, FileChange

TOOLS: dict[str, Tool] = {"read_file": ReadFile(), "write_file": WriteFile(), "edit_file": EditFile(), "bash": Bash()}
TOOLS |= {"list_files": ListFiles(), "glob": Glob(), "grep": Grep(), "web_fetch": WebFetch()}
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    guardian = Guardian()
    yield guardian
    guardian.close()


class Late(PermissionGate):
    """A gate behind which something happens before an approved call runs."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    async def approve(self, call: JudgedCall, look: Look, ask: Ask) -> Approved | Decision:
        verdict = await super().approve(call, look, ask)
        self.meanwhile()
        return verdict


def toolbox(
    session: Session, folder: Path, guardian: Guardian, meanwhile: Callable[[], object] = lambda: None
) -> Toolbox:
    """Every tool, in a mode that does not ask."""

    async def remember(rule: PermissionRule) -> None:
        raise AssertionError("nobody was asked")

    roots = Roots([str(folder)])
    execution = DirectExecution(session, roots, lambda: "full-access", ENVIRONMENT, "")
    desk = ToolContext(session, roots, ENVIRONMENT, guardian, Changes(), execution)
    gate = Late(lambda: "full-access", [], remember)
    gate.meanwhile = meanwhile
    return Toolbox(lambda: list(TOOLS.values()), gate, desk)


class Bench:
    """One tool call inside one turn, and what the client saw of it."""

    def __init__(self, folder: Path, guardian: Guardian) -> None:
        self.folder = folder
        self.events: list[AnyEvent] = []
        self.outcome: ToolOutcome | None = None
        # Between the yes to a call and the call.
        self.meanwhile: Callable[[], object] = lambda: None
        self._guardian = guardian

    async def run(self, name: str, cancel_at: str = "", **given: object) -> ToolOutcome | None:
        agent = Agent("tools")

        @agent.prompt
        async def work(session: Session, prompt: Prompt) -> None:
            tools = toolbox(session, self.folder, self._guardian, self.meanwhile)

            async def finished(said: ContextToolResult) -> None:
                self.outcome = ToolOutcome(said.text, said.failed)

            await tools.run([ContextToolCall("call", name, given)], finished)

        async with pair(agent, protocol=2) as client:
            turn = (await client.new_session(str(self.folder))).prompt("go")
            async for event in turn:
                self.events.append(event)
                if cancel_at and type(event).__name__ == cancel_at:
                    cancel_at = ""
                    await turn.cancel()
        if self.outcome is None:
            return None
        ends = [e for e in self.events if isinstance(e, ToolCallUpdate) and e.status in FINAL_STATUSES]
        raw = ends[-1].raw_output
        return self.outcome._replace(raw=None if raw is UNSET else raw)


@pytest.fixture
def bench(tmp_path: Path, guardian: Guardian) -> Bench:
    return Bench(tmp_path, guardian)


async def test_a_file_is_read_whole_or_by_lines(bench: Bench) -> None:
    (bench.folder / "a.txt").write_text("one\ntwo\nthree\n")
    assert await bench.run("read_file", path="a.txt") == ToolOutcome("1\tone\n2\ttwo\n3\tthree", raw={"lines": 3})
    assert await bench.run("read_file", path="a.txt", start_line=2, end_line=2) == ToolOutcome(
        "2\ttwo", raw={"lines": 3}
    )


async def test_a_file_outside_or_missing_is_told_and_not_read(bench: Bench) -> None:
    outside = await bench.run("read_file", path="/etc/passwd")
    missing = await bench.run("read_file", path="nothing")
    assert outside == ToolOutcome("Permission denied. /etc/passwd is outside of the workspace.", failed=True)
    assert missing is not None
    assert (missing.failed, missing.text.endswith("no such file or directory.")) == (True, True)


async def test_a_written_file_is_shown_as_a_diff(bench: Bench) -> None:
    await bench.run("write_file", path="new/a.txt", content="hello\n")
    assert (bench.folder / "new" / "a.txt").read_text() == "hello\n"
    (diff,) = [
        item
        for event in bench.events
        if isinstance(event, ToolCallUpdate) and isinstance(event.content, list)
        for item in event.content
        if isinstance(item, Diff)
    ]
    assert [change.path for change in diff.changes if isinstance(change, FileChange)] == [
        str(bench.folder.resolve() / "new" / "a.txt")
    ]


async def test_an_edit_replaces_one_piece_and_keeps_the_rest(bench: Bench) -> None:
    file = bench.folder / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    file.chmod(0o750)
    done = await bench.run("edit_file", path="a.txt", old_string="two\nthree", new_string="2\n3")
    assert done is not None
    assert (done.text, done.raw) == (f"Replaced once in {file}.", {"path": str(file), "replaced": 1})
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"one\r\n2\r\n3\r\n", 0o750)


@pytest.mark.parametrize(
    ("old", "all_of_them", "why"),
    [
        ("four", False, "old_string is not in"),
        ("o", False, "old_string is 2 times in"),
        ("one\ntwo", True, "old_string is not in"),
    ],
)
async def test_an_edit_that_means_nothing_or_several_things_is_refused(
    bench: Bench, old: str, all_of_them: bool, why: str
) -> None:
    (bench.folder / "a.txt").write_text("one two")
    done = await bench.run("edit_file", path="a.txt", old_string=old, new_string="x", replace_all=all_of_them)
    assert done is not None
    assert (done.failed, why in done.text) == (True, True)
    assert (bench.folder / "a.txt").read_text() == "one two"


async def test_every_occurrence_is_replaced_where_that_is_asked(bench: Bench) -> None:
    (bench.folder / "a.txt").write_text("one two")
    await bench.run("edit_file", path="a.txt", old_string="o", new_string="0", replace_all=True)
    assert (bench.folder / "a.txt").read_text() == "0ne tw0"


CUT = "only the first 4194304 bytes were read"
NOT_TEXT = "it is not all UTF-8 (what is not was read as \ufffd)"
LINE = b"one\n"
# All that is read behind the first line, but for one byte.
REST = b"x" * (FILE_BYTES - len(LINE) - 1)
LACKING = {
    "not UTF-8": (b"caf\xe9", NOT_TEXT),
    "too long": (REST + b"xx", CUT),
    "both": (b"\xe9" + REST + b"x", f"{CUT}, and {NOT_TEXT}"),
    "cut inside a character": (REST + "é".encode(), CUT),
    "not UTF-8 where it is cut": (REST + b"\xffx", f"{CUT}, and {NOT_TEXT}"),
}


@pytest.mark.parametrize(("rest", "lacks"), LACKING.values(), ids=LACKING)
async def test_what_a_text_lacks_of_its_file_is_told(bench: Bench, rest: bytes, lacks: str) -> None:
    (bench.folder / "a.txt").write_bytes(LINE + rest)
    outcome = await bench.run("read_file", path="a.txt", end_line=1)
    assert outcome == ToolOutcome(f"1\tone\n[{lacks}]", raw={"lines": 2})


@pytest.mark.parametrize(("rest", "lacks"), LACKING.values(), ids=LACKING)
async def test_what_cannot_be_shown_whole_is_not_edited(bench: Bench, rest: bytes, lacks: str) -> None:
    file = bench.folder / "a.txt"
    file.write_bytes(LINE + rest)
    done = await bench.run("edit_file", path="a.txt", old_string="one", new_string="1")
    assert done == ToolOutcome(f"{file} cannot be edited: {lacks}.", failed=True)
    assert file.read_bytes() == LINE + rest


async def test_half_a_character_is_not_shown(bench: Bench) -> None:
    (bench.folder / "a.txt").write_bytes(LINE + REST + "é".encode())
    outcome = await bench.run("read_file", path="a.txt", start_line=2)
    assert outcome == ToolOutcome(
        f"2\t{cut(REST.decode(), LINE_CHARACTERS).replace(chr(10), ' ')}\n[{CUT}]", raw={"lines": 2}
    )


async def test_a_folder_is_listed_and_files_are_found(bench: Bench) -> None:
    (bench.folder / "src").mkdir()
    (bench.folder / "src" / "a.py").write_text("one\nneedle here\n")
    (bench.folder / "b.txt").write_text("needle\n")
    (bench.folder / ".gitignore").write_text("*.txt\n")
    listed = await bench.run("list_files")
    found = await bench.run("glob", pattern="**/*")
    matches = await bench.run("grep", pattern="NEED.e", case_insensitive=True)
    assert listed is not None and found is not None and matches is not None
    assert listed.text == ".gitignore\nb.txt\nsrc/"
    assert found.text == ".gitignore\nsrc/a.py"
    assert (matches.text, matches.raw) == ("src/a.py:2:needle here", {"matches": 1})


async def test_nothing_is_an_answer_and_outside_is_none(bench: Bench) -> None:
    nothing = await bench.run("grep", pattern="x")
    outside = await bench.run("glob", pattern="*", path="..")
    assert nothing is not None and outside is not None
    assert (nothing.text, nothing.failed) == ("Nothing matches.", False)
    assert (outside.text, outside.failed) == ("Permission denied. .. is outside of the workspace.", True)


@pytest.mark.requirement("I9")
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://[::1]:80/", "file:///etc/passwd", "http://169.254.169.254/"]
)
async def test_the_web_is_not_this_machine(bench: Bench, url: str) -> None:
    outcome = await bench.run("web_fetch", url=url)
    assert outcome is not None
    assert outcome.failed


async def test_nothing_is_written_outside(bench: Bench, tmp_path: Path) -> None:
    outcome = await bench.run("write_file", path="../escaped", content="x")
    assert outcome is not None
    assert outcome.failed
    assert not (tmp_path.parent / "escaped").exists()


async def test_files_go_through_an_editor_that_lends_its_own(tmp_path: Path, guardian: Guardian) -> None:
    (tmp_path / "a").write_text("on disk")
    written: list[tuple[str, str]] = []

    async def read(request: ReadTextFile) -> str:
        return "unsaved"

    async def write(request: WriteTextFile) -> None:
        written.append((request.path, request.content))

    agent, outcomes = Agent("tools"), list[ContextToolResult]()

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        tools = toolbox(session, tmp_path, guardian)

        async def finished(said: ContextToolResult) -> None:
            outcomes.append(said)

        await tools.run([ContextToolCall("1", "read_file", {"path": "a"})], finished)
        await tools.run([ContextToolCall("2", "write_file", {"path": "a", "content": "new"})], finished)

    async with pair(agent, protocol=1, read_text_file=read, write_text_file=write) as client:
        await (await client.new_session(str(tmp_path))).ask("go")
    assert [outcome.text for outcome in outcomes][:1] == ["1\tunsaved"]
    assert written == [(str(tmp_path.resolve() / "a"), "new")]
    assert (tmp_path / "a").read_text() == "on disk"


async def test_a_command_is_shown_while_it_runs_and_its_output_kept_in_order(bench: Bench) -> None:
    outcome = await bench.run("bash", command="echo one; echo two >&2; echo three; pwd; exit 3")
    said = f"one\ntwo\nthree\n{bench.folder}\n"
    assert outcome == ToolOutcome(f"{said}\n[exit code 3]", failed=True, raw={"exitCode": 3})
    assert any(isinstance(event, TerminalOutputChunk) for event in bench.events)
    assert exits(bench) == [ExitStatus(exit_code=3)]


async def test_a_command_sees_no_terminal_and_no_input(bench: Bench) -> None:
    outcome = await bench.run("bash", command="cat; test -t 0 || echo no tty", timeout=10)
    assert outcome == ToolOutcome("no tty\n", raw={"exitCode": 0})


# Seconds that no other process sleeps: the same tests may run beside us.
NAPS = [f"{100_000 + os.getpid()}.{number}" for number in range(2)]


async def test_a_command_is_stopped_at_its_deadline_with_everything_it_started(bench: Bench) -> None:
    command = f"(trap '' TERM; sleep {NAPS[0]}) & echo here; sleep {NAPS[1]}"
    outcome = await bench.run("bash", command=command, timeout=1)
    assert outcome == ToolOutcome("here\n\n[stopped after 1 s]", failed=True)
    assert exits(bench) == [ExitStatus(None, "SIGKILL")]
    assert _sleeping() == []


async def test_a_cancelled_command_is_dead_with_everything_it_started_and_its_end_is_told(bench: Bench) -> None:
    command = f"(trap '' TERM; sleep {NAPS[0]}) & setsid sleep {NAPS[1]} & echo up; wait"
    began = time.monotonic()
    await bench.run("bash", "TerminalOutputChunk", command=command)
    assert exits(bench) == [ExitStatus(None, "SIGKILL")]
    assert _sleeping() == []
    assert time.monotonic() - began < 30


async def test_a_flood_is_cut_in_the_middle_and_told(bench: Bench) -> None:
    outcome = await bench.run("bash", command="echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo last")
    assert outcome is not None
    assert (outcome.text.startswith("first\n"), outcome.text.endswith("last\n")) == (True, True)
    assert "characters cut" in outcome.text
    assert len(outcome.text) < 110_000


# -- between the yes and the call --------------------------------------------------------------------------------------

Deed = Callable[[Path], object]
CHANGED = "{work}/d/f has changed since it was shown. Read it again."
OTHER = "{work}/other/f is not the file that was shown; something changed it meanwhile."
ELSEWHERE = "A folder of the workspace leads elsewhere by now; a link was put in its way."
TURNED = "A path in the command leads elsewhere than when it was shown."


@pytest.fixture
def scene(tmp_path: Path, guardian: Guardian) -> Bench:
    """A file in a folder; beside it, and outside, others that look the same."""
    for folder in ("work/d", "work/other", "outside/d"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text("old\n")
    return Bench(tmp_path / "work", guardian)


def linked(path: str, target: str) -> Deed:
    """A link is put in the place of what was there."""

    def deed(work: Path) -> None:
        (work / path).rename(work.parent / "was")
        (work / path).symlink_to(work.parent / target)

    return deed


def gone(path: str) -> Deed:
    return lambda work: (work / path).rename(work.parent / "was")


def changed(path: str) -> Deed:
    return lambda work: (work / path).write_text("changed\n")


def world(folder: Path) -> dict[Path, str]:
    """Everything below a folder: links as links."""
    return {
        path: os.readlink(path) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else "/"
        for path in folder.rglob("*")
    }


async def refused_after(scene: Bench, deed: Deed, name: str, **given: object) -> str:
    """Why a call did nothing at all: the world is what the deed has made of it."""
    worlds: list[dict[Path, str]] = []

    def meanwhile() -> None:
        deed(scene.folder)
        worlds.append(world(scene.folder.parent))

    scene.meanwhile = meanwhile
    outcome = await scene.run(name, "", **given)
    assert outcome is not None
    assert outcome.failed
    assert worlds == [world(scene.folder.parent)]
    return outcome.text


FILE_CALLS: dict[str, dict[str, object]] = {
    "read_file": {"path": "d/f"},
    "write_file": {"path": "d/f", "content": "new\n"},
    "edit_file": {"path": "d/f", "old_string": "old", "new_string": "new"},
}


@pytest.mark.parametrize(
    "deed",
    [linked("d/f", "outside/d/f"), linked("d", "outside/d"), linked("", "outside")],
    ids=["file", "folder", "root"],
)
@pytest.mark.parametrize("name", FILE_CALLS)
async def test_a_link_that_leads_out_is_not_followed(scene: Bench, name: str, deed: Deed) -> None:
    result = await refused_after(scene, deed, name, **FILE_CALLS[name])
    assert result == "Permission denied. d/f is outside of the workspace."


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        (gone("d/f"), CHANGED),
        (changed("d/f"), CHANGED),
        (linked("d/f", "work/other/f"), OTHER),
        (linked("d", "work/other"), OTHER),
    ],
    ids=["gone", "changed", "other file", "other folder"],
)
@pytest.mark.parametrize("name", ["write_file", "edit_file"])
async def test_a_file_that_is_not_what_was_shown_is_not_written(scene: Bench, name: str, deed: Deed, why: str) -> None:
    text = await refused_after(scene, deed, name, **FILE_CALLS[name])
    assert text == why.format(work=scene.folder)


async def test_a_file_that_is_gone_is_not_read(scene: Bench) -> None:
    text = await refused_after(scene, gone("d/f"), "read_file", path="d/f")
    assert text == f"{scene.folder}/d/f: no such file or directory."


@pytest.mark.parametrize(
    ("shown", "now"),
    [
        (None, b""),
        (b"caf\xe9", b"caf\xe8"),
        (b"x" * FILE_BYTES, b"x" * FILE_BYTES + b"more"),
        (b"x" * FILE_BYTES + b"more", b"x" * FILE_BYTES + b"less"),
    ],
    ids=["made", "another byte that is no text", "longer than what is read", "changed behind what is read"],
)
async def test_a_file_is_not_overwritten_that_only_seems_to_be_what_was_shown(
    scene: Bench, shown: bytes | None, now: bytes
) -> None:
    file = scene.folder / "d" / "f"
    file.unlink() if shown is None else file.write_bytes(shown)
    text = await refused_after(scene, lambda work: file.write_bytes(now), "write_file", path="d/f", content="new\n")
    assert text == CHANGED.format(work=scene.folder)


@pytest.mark.parametrize(
    ("deed", "path", "why"),
    [
        (linked("d", "outside/d"), "d", "Permission denied. d is outside of the workspace."),
        (linked("", "outside"), ".", "Permission denied. . is outside of the workspace."),
        (gone("d"), "d", "{work}/d: no such file or directory."),
    ],
    ids=["folder out", "root out", "gone"],
)
@pytest.mark.parametrize("name", ["list_files", "glob", "grep"])
async def test_a_folder_that_leads_out_or_is_gone_is_not_looked_through(
    scene: Bench, name: str, deed: Deed, path: str, why: str
) -> None:
    pattern = {} if name == "list_files" else {"pattern": "*" if name == "glob" else "old"}
    assert await refused_after(scene, deed, name, path=path, **pattern) == why.format(work=scene.folder)


@pytest.mark.parametrize(
    ("command", "deed", "why"),
    [
        ("touch new", linked("", "outside"), ELSEWHERE),
        ("touch new", linked("", "was"), ELSEWHERE),
        ("touch new", gone(""), "Cannot start /bin/bash: the folder {work} does not exist."),
        ("cat d/f", linked("d/f", "outside/d/f"), TURNED),
        ("cd d && cat f", linked("d", "outside/d"), TURNED),
        ("cat d/f", linked("d/f", "work/other/f"), TURNED),
    ],
    ids=["root out", "root moved", "root gone", "file out", "folder out", "other file"],
)
async def test_a_command_is_not_run_elsewhere_nor_on_other_files(
    scene: Bench, command: str, deed: Deed, why: str
) -> None:
    assert await refused_after(scene, deed, "bash", command=command) == why.format(work=scene.folder)


async def test_nor_where_a_link_is_put_while_it_is_being_confined(
    scene: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    confine = DirectExecution.start

    async def start(self: DirectExecution, argv: Sequence[str], *, asked: bool) -> Start:
        confined = await confine(self, argv, asked=asked)
        linked("", "outside")(scene.folder)
        return confined

    monkeypatch.setattr(DirectExecution, "start", start)
    assert await scene.run("bash", command="touch new") == ToolOutcome(ELSEWHERE, failed=True)
    assert not (scene.folder / "new").exists()


async def test_what_the_confining_program_says_when_it_fails_is_in_the_result(
    scene: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(self: DirectExecution, argv: Sequence[str], *, asked: bool) -> Start:
        return Start(["/bin/sh", "-c", "echo bwrap: no namespaces >&2; exit 1"], {}, lambda: ())

    monkeypatch.setattr(DirectExecution, "start", start)
    text = "\n[said while it was started: bwrap: no namespaces]\n[exit code 1]"
    assert await scene.run("bash", command="touch new") == ToolOutcome(text, failed=True, raw={"exitCode": 1})


# -- wrong calls -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("read_file", {}),
        ("read_file", {"path": 1}),
        ("read_file", {"path": "a", "start_line": 0}),
        ("read_file", {"path": "a", "start_line": 3, "end_line": 2}),
        ("write_file", {"path": "a"}),
        ("bash", {"command": "ls", "timeout": "1"}),
        ("bash", {"cmd": "ls"}),
    ],
)
def test_a_wrong_call_is_told_how_to_do_better(name: str, given: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=name if name != "read_file" else r"read_file|end_line"):
        TOOLS[name].check(JudgedCall("x", name, given))


def test_a_long_text_keeps_its_ends() -> None:
    assert cut("abc", 10) == "abc"
    assert cut("a" * 50 + "b" * 50, 20) == "a" * 10 + "\n[… 80 characters cut …]\n" + "b" * 10


def exits(bench: Bench) -> list[ExitStatus]:
    """How the terminals ended, as the client was told."""
    updates = [event.exit_status for event in bench.events if isinstance(event, TerminalUpdate)]
    return [status for status in updates if isinstance(status, ExitStatus)]


def _sleeping() -> list[str]:
    """The naps that are still taken."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:1] == [b"sleep"] and words[1].decode() in NAPS:
                found.append(words[1].decode())
    return found
