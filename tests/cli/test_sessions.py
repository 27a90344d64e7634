"""`dragoman sessions`, run as a user runs it, on sessions that the real agent or the real store has made."""

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from dragoman.cli.main import main
from dragoman.store.contract import SessionMeta
from dragoman.store.entries import Entry, EventEntry, TextEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle, UserMessage
from tests.support.command import Called, call
from tests.support.editor import DRAGOMAN, Editor, turns
from tests.support.fork_server.client import MAIN, Terminal, fork_server

EVIL = "\x1b]0;evil\x07 \x9b31m \u202egnp.exe \x7f"
SHOWN = r"\x1b]0;evil\x07 \x9b31m \u202egnp.exe \x7f"
TALK = turns(
    [
        {"think": "Let me see."},
        {"say": f"I will look. {EVIL}"},
        {"call": "read_file", "input": {"path": "in.txt"}},
        {"call": "write_file", "input": {"path": "out.txt", "content": "new\n"}},
        {"call": "bash", "input": {"command": "printf '\\033[31mred\\033[0m\\n'; exit 3"}},
        {"say": "Done."},
    ],
    [{"say": "As far as I can"}, {"stop": "max_tokens"}],
    [{"fail": "auth"}],
)
PROMPTS = (f"Look {EVIL} please", "Go on", "And now?")

Home = Path


def run(home: Home, *arguments: str) -> Called:
    return call("sessions", *arguments, DRAGOMAN_HOME=str(home), HOME="/nobody", TZ="UTC")


def said(home: Home, *arguments: str) -> str:
    """What a command that succeeds says; nothing on stderr."""
    code, out, error = run(home, *arguments)
    assert (code, error) == (0, "")
    return out


def with_store(
    home: Home, work: Callable[[SqliteStore], Awaitable[None]], clock: Callable[[], float] = time.time
) -> None:
    async def main() -> None:
        store = SqliteStore(home / "sessions", clock=clock)
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(main())


def keep(home: Home, session_id: str, *entries: Entry, cwd: str = "/project", title: str = "", when: float = 0) -> str:
    """A stored session."""

    async def work(store: SqliteStore) -> None:
        log = await store.create(SessionMeta(session_id, cwd, title=title))
        log.append(entries, lambda error: None)
        await log.release()

    with_store(home, work, (lambda: when) if when else time.time)
    return session_id


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, str]:
    """A home with one session that the agent has lived, and its id."""
    folder = tmp_path_factory.mktemp("talk")
    (folder / "in.txt").write_text("one\ntwo\n")
    home = folder / "home"
    with Editor(folder, TALK, "--mode", "full", version=2, env={"DRAGOMAN_HOME": str(home)}) as editor:
        editor.open()
        for prompt in PROMPTS:
            editor.prompt(prompt)
        return home, editor.session


# -- what is shown ---------------------------------------------------------------------------------------------------


def test_a_session_is_listed_as_the_protocol_says_it(talk: tuple[Home, str]) -> None:
    home, session = talk
    (info,) = json.loads(said(home, "list", "--json"))
    assert info.pop("updatedAt").endswith("Z")
    assert info == {"sessionId": session, "cwd": str(home.parent), "title": info["title"]}
    assert info["title"].startswith("Look \x1b]0;evil")


def test_the_events_of_a_session_are_one_array_and_an_export_has_them_line_by_line(talk: tuple[Home, str]) -> None:
    home, session = talk
    events = json.loads(said(home, "show", session, "--json"))
    exported = [json.loads(line) for line in said(home, "export", session).splitlines()]
    assert [line for line in exported if line["sessionUpdate"] != "_dragoman/decision"] == events
    assert [event["content"][0]["text"] for event in events if event["sessionUpdate"] == "user_message"] == [*PROMPTS]
    said_by_agent = [event for event in events if event["sessionUpdate"] == "agent_message_chunk"]
    assert [event["content"]["text"] for event in said_by_agent] == [f"I will look. {EVIL}", "Done.", "As far as I can"]
    ends = [event.get("stopReason") for event in events if event.get("state") == "idle"]
    assert ends == ["end_turn", "max_tokens", "error"]
    assert {event["status"] for event in events if "status" in event} >= {"completed", "failed"}


def test_a_transcript_tells_who_said_what_and_what_was_done(talk: tuple[Home, str]) -> None:
    home, session = talk
    head, *parts = said(home, "show", session).rstrip("\n").split("\n\n")
    assert head.splitlines()[1] == session
    shown = {part.split("\n", 1)[0]: part for part in parts}
    assert [part.split("\n", 1)[0] for part in parts] == [
        *("You", "Thoughts", "Agent"),
        "Tool: Read in.txt [read, completed]",
        "Tool: Write out.txt [edit, completed]",
        "Tool: printf '\\033[31mred\\033[0m\\n'; exit 3 [execute, failed]",
        *("Agent", "You", "Agent", "(max_tokens)", "You", "(error: The model wants a login)"),
    ]
    assert shown["Tool: Read in.txt [read, completed]"].splitlines()[-2:] == ["  1\tone", "  2\ttwo"]
    assert shown["Tool: Write out.txt [edit, completed]"].endswith("@@ -0,0 +1 @@\n  +new")
    assert parts[5].splitlines()[1:] == ["  red", "  (exit code 3)"]


@pytest.mark.parametrize("arguments", [["list"], ["show", "ID"], ["show", "ID", "--json"], ["export", "ID"]])
def test_nothing_stored_reaches_a_terminal_as_a_command(arguments: list[str], talk: tuple[Home, str]) -> None:
    home, session = talk
    for out in (
        said(home, *(session if each == "ID" else each for each in arguments)),
        at_terminal(home, *(session if each == "ID" else each for each in arguments), colours=False),
    ):
        assert "evil" in out
        assert [c for c in out if c in EVIL and not c.isprintable()] == []
        assert "\x1b" not in out


def test_what_is_escaped_for_a_terminal_is_the_same_json(talk: tuple[Home, str]) -> None:
    home, session = talk
    assert "\\u202e" in said(home, "export", session)
    texts = [json.loads(line).get("content") for line in said(home, "export", session).splitlines()]
    assert f"I will look. {EVIL}" in [each["text"] for each in texts if isinstance(each, dict)]


def test_a_session_can_be_exported_as_a_document(talk: tuple[Home, str], tmp_path: Path) -> None:
    home, session = talk
    target = tmp_path / "talk.md"
    assert said(home, "export", session, "--format", "markdown", "--output", str(target)) == ""
    text = target.read_text(encoding="utf-8")
    assert "## You\n\nGo on\n\n## Agent\n\nAs far as I can\n\n*(max_tokens)*" in text
    assert "```diff\ndiff --git" in text
    assert target.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["talk.md"]


def test_a_fence_in_a_document_is_longer_than_any_in_the_text(tmp_path: Path) -> None:
    from dragoman.cli.transcript import Part, TranscriptText, as_markdown

    part = Part("Tool: x", [TranscriptText("output", "a\n````\nb\n")])
    assert as_markdown(part) == "## Tool: x\n\n`````\na\n````\nb\n`````\n\n"


def test_an_export_that_fails_leaves_the_file_as_it_was(talk: tuple[Home, str], tmp_path: Path) -> None:
    home, _ = talk
    target = tmp_path / "talk.jsonl"
    target.write_text("before")
    assert run(home, "export", "nobody", "--output", str(target))[0] == 1
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["talk.jsonl"]


@pytest.mark.parametrize("target", ["/nowhere/x", "/dev/full"])
def test_an_export_that_cannot_be_written_is_a_sentence(target: str, talk: tuple[Home, str]) -> None:
    home, session = talk
    code, out, error = run(home, "export", session, "--output", target)
    assert (code, out) == (1, "")
    assert error.startswith(f"dragoman: {target}: cannot write there: ")


def test_long_output_is_shortened_unless_all_is_asked_for(tmp_path: Path) -> None:
    script = turns([{"call": "bash", "input": {"command": "seq 1000"}}])
    with Editor(tmp_path, script, "--mode", "full") as editor:
        session = editor.open().session
        editor.prompt("count")
    short, whole = said(tmp_path / "home", "show", session), said(tmp_path / "home", "show", session, "--full")
    assert "  40\n  (960 more lines; --full shows them)\n" in short
    assert "  1000\n" in whole and "more lines" not in whole


def test_a_turn_without_an_end_is_said_to_have_none(tmp_path: Path) -> None:
    session = keep(
        tmp_path, "a", EventEntry(UserMessage("m1", [Text("hi")])), TextEntry("agent_message_chunk", "m2", "Well")
    )
    assert said(tmp_path, "show", session).endswith(
        "You\n  hi\n\nAgent\n  Well\n\n(this turn has no end yet: it goes on, or was cut off)\n\n"
    )


# -- the list --------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path: Path) -> Home:
    keep(tmp_path, "sess_aaaaaaaa1", cwd="/project/one", title="The first\nof all", when=1_000_000_000)
    keep(tmp_path, "sess_aaaaaaaa2", cwd="/project/two", title=EVIL, when=1_100_000_000)
    keep(tmp_path, "sess_b", cwd="/project/one", when=1_200_000_000)

    async def put_away(store: SqliteStore) -> None:
        await store.change("sess_b", archived=True)

    with_store(tmp_path, put_away)
    return tmp_path


def test_the_list_has_a_line_for_each_session_the_newest_first(many: Home) -> None:
    assert said(many, "list", "--all").splitlines() == [
        "sess_b          2008-01-10 21:20  /project/one                    [archived] (untitled)",
        f"sess_aaaaaaaa2  2004-11-09 11:33  /project/two                    {SHOWN}",
        "sess_aaaaaaaa1  2001-09-09 01:46  /project/one                    The first of all",
    ]


def test_the_list_can_be_narrowed(many: Home) -> None:
    def listed(*options: str) -> list[str]:
        return [each["sessionId"] for each in json.loads(said(many, "list", "--json", *options))]

    assert listed() == ["sess_aaaaaaaa2", "sess_aaaaaaaa1"]
    assert listed("--all") == ["sess_b", "sess_aaaaaaaa2", "sess_aaaaaaaa1"]
    assert listed("--all", "--limit", "2") == ["sess_b", "sess_aaaaaaaa2"]
    assert listed("--cwd", "/project/one/") == ["sess_aaaaaaaa1"]
    assert listed("--cwd", "/nowhere") == []


def test_the_list_is_whole_over_many_pages(tmp_path: Path) -> None:
    async def fill(store: SqliteStore) -> None:
        for number in range(120):
            await store.create(SessionMeta(f"s{number:03}", "/project"))

    with_store(tmp_path, fill)
    ids = [each["sessionId"] for each in json.loads(said(tmp_path, "list", "--json"))]
    assert ids == [f"s{number:03}" for number in reversed(range(120))]
    assert len(said(tmp_path, "list", "--limit", "70").splitlines()) == 70


@pytest.mark.parametrize("columns", [40, *(pytest.param(columns, marks=pytest.mark.slow) for columns in (60, 80)), 200])
def test_no_line_of_the_list_is_wider_than_the_terminal(columns: int, tmp_path: Path) -> None:
    keep(tmp_path, "sess_1", cwd="/project/" + "deep/" * 20 + "end", title="Long words " * 30)
    keep(tmp_path, "sess_2", cwd="/目录" * 20, title="漢字かな" * 30)
    lines = at_terminal(tmp_path, "list", columns=columns).splitlines()
    assert len(lines) == 2
    assert "…" in lines[0] and "…" in lines[1]
    from dragoman.cli.text_width import width

    assert max(map(width, lines)) <= columns


def test_nothing_is_kept_and_nothing_is_made(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for place in (home, home, tmp_path):
        assert said(place, "list", "--json") == "[]\n"
        assert run(place, "list") == (0, "", "No sessions yet; `dragoman chat` begins one.\n")
        assert run(place, "list", "--cwd", "/nope") == (0, "", "No sessions of /nope: there is no such folder.\n")
        assert run(place, "show", "x")[0] == 1
        assert run(place, "delete", "x")[0] == 1
        assert list(tmp_path.iterdir()) == []


# -- naming one ------------------------------------------------------------------------------------------------------


def test_the_beginning_of_an_id_is_enough_if_it_is_only_one_s(many: Home) -> None:
    assert said(many, "show", "sess_b").splitlines()[1] == "sess_b"
    assert said(many, "show", "b").splitlines()[1] == "sess_b"
    assert said(many, "show", "sess_aaaaaaaa2").splitlines()[1] == "sess_aaaaaaaa2"
    code, out, error = run(many, "show", "sess_a")
    assert (code, out) == (1, "")
    assert error == (
        "dragoman: 'sess_a' begins 2 ids: sess_aaaaaaaa1, sess_aaaaaaaa2; write more characters of the id\n"
    )


def test_a_whole_id_is_meant_even_if_it_begins_another(tmp_path: Path) -> None:
    for name in ("ab", "abc"):
        keep(tmp_path, name)
    assert said(tmp_path, "show", "ab").splitlines()[1] == "ab"


@pytest.mark.parametrize(
    ("action", "given"),
    [("show", "nobody"), ("export", ""), ("fork", "../sess_b"), ("delete", "\x1b[2J"), ("delete", "sess_b.session")],
)
def test_an_unknown_session_is_exit_1_and_a_sentence(action: str, given: str, many: Home) -> None:
    code, out, error = run(many, action, given)
    assert (code, out) == (1, "")
    assert error == f"dragoman: there is no session {given!r}; `dragoman sessions list --all` shows what there is\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("show", "the following arguments are required: ID"),
        ("list --limit 0", "'0' is not a number from 1 on"),
        ("export x --format pdf", "invalid choice: 'pdf'"),
        ("export x --json --format markdown", "two different things"),
    ],
)
def test_a_wrong_command_is_exit_2(arguments: str, complaint: str, tmp_path: Path) -> None:
    code, out, error = run(tmp_path, *arguments.split())
    assert (code, out) == (2, "")
    assert complaint in error


@pytest.mark.parametrize("action", ["", "list", "show", "export", "fork", "delete"])
def test_help_reads_well(action: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        main(["sessions", *action.split(), "--help"])
    shown = capsys.readouterr().out
    assert left.value.code == 0
    assert max(map(len, shown.splitlines())) <= 80
    assert ("--json" in shown) == bool(action)


# -- fork and delete -------------------------------------------------------------------------------------------------


def test_a_fork_has_the_same_events_and_an_id_of_its_own(talk: tuple[Home, str], tmp_path: Path) -> None:
    home, session = talk
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    forked = said(copy, "fork", session).rstrip("\n")
    assert forked != session
    assert said(copy, "export", forked) == said(copy, "export", session)
    info = json.loads(said(copy, "fork", session, "--json"))
    assert info["sessionId"] in said(copy, "list", "--json")
    assert info["cwd"] == str(home.parent)
    # It has no holder until it is opened.
    assert said(copy, "delete", forked, "--yes").startswith(f"deleted {forked}  ")


def test_a_fork_at_a_message_ends_with_that_message(talk: tuple[Home, str], tmp_path: Path) -> None:
    home, session = talk
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    events = [json.loads(line) for line in said(copy, "export", session).splitlines()]
    (_, second, _) = [event["messageId"] for event in events if event["sessionUpdate"] == "user_message"]
    forked = said(copy, "fork", session, "--at", second).rstrip("\n")
    copied = [json.loads(line) for line in said(copy, "export", forked).splitlines()]
    assert copied == events[: len(copied)]
    assert [event["content"][0]["text"] for event in copied if event["sessionUpdate"] == "user_message"] == [
        PROMPTS[0],
        PROMPTS[1],
    ]
    code, out, error = run(copy, "fork", session, "--at", "msg_none")
    assert (code, out) == (1, "")
    assert "has no message 'msg_none'" in error


def test_several_sessions_are_deleted_and_named(many: Home) -> None:
    assert json.loads(said(many, "delete", "sess_b", "sess_aaaaaaaa1", "sess_b", "--yes", "--json")) == {
        "deleted": ["sess_b", "sess_aaaaaaaa1"]
    }
    assert [each["sessionId"] for each in json.loads(said(many, "list", "--json", "--all"))] == ["sess_aaaaaaaa2"]


def test_without_a_terminal_nothing_is_deleted_unless_yes_is_given(many: Home) -> None:
    refused = "dragoman: nothing was deleted: there is no terminal to ask at; add --yes to delete without a question\n"
    assert run(many, "delete", "sess_b") == (2, "", refused)
    assert len(said(many, "list", "--all").splitlines()) == 3


def test_a_script_is_not_asked_and_is_told_what_is_gone(many: Home) -> None:
    code, out, error = run(many, "delete", "sess_b", "-y")
    assert (code, error) == (0, "")
    assert out.startswith("deleted sess_b  ")
    assert len(said(many, "list", "--all").splitlines()) == 2


def test_a_mistake_in_one_id_deletes_nothing(many: Home) -> None:
    assert run(many, "delete", "sess_b", "nobody", "--yes")[0] == 1
    assert len(said(many, "list", "--all").splitlines()) == 3


def test_a_session_that_is_open_elsewhere_is_not_deleted_but_can_be_read_and_forked(tmp_path: Path) -> None:
    with Editor(tmp_path, turns([{"say": "Hello."}])) as editor:
        session = editor.open().session
        editor.prompt("hi")
        home = tmp_path / "home"
        code, out, error = run(home, "delete", session, "--yes", "--json")
        assert (code, json.loads(out)) == (1, {"deleted": []})
        assert error == f"dragoman: {session} was not deleted: another process has the session open\n"
        assert "Hello." in said(home, "show", session)
        forked = said(home, "fork", session).strip()
        assert said(home, "delete", forked, "--yes").startswith(f"deleted {forked}  ")
        assert editor.prompt("still there?")[-1]["result"]["stopReason"] == "end_turn"
    assert said(home, "delete", session, "--yes").startswith(f"deleted {session}  ")


def test_a_damaged_session_is_a_sentence_and_can_be_deleted(many: Home) -> None:
    (many / "sessions" / "sess_b.session").write_bytes(b"garbage" * 1000)
    code, out, error = run(many, "export", "sess_b")
    assert (code, out, error) == (1, "", "dragoman: the session's file is damaged\n")
    assert json.loads(said(many, "delete", "sess_b", "--yes", "--json")) == {"deleted": ["sess_b"]}


# -- at a terminal ---------------------------------------------------------------------------------------------------


def terminal(home: Home, *arguments: str, columns: int = 80, **env: str) -> Terminal:
    environment = {**surroundings(home), **env}
    return fork_server().at_terminal(MAIN, "sessions", *arguments, env=environment, dimensions=(24, columns))


def surroundings(home: Home) -> dict[str, str]:
    environment = {**os.environ, "DRAGOMAN_HOME": str(home), "HOME": "/nobody", "TZ": "UTC", "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    return environment


def at_terminal(home: Home, *arguments: str, columns: int = 80, colours: bool = True) -> str:
    with terminal(home, *arguments, columns=columns, **({} if colours else {"NO_COLOR": "1"})) as process:
        out = process.read()
        process.close()
        assert process.exitstatus == 0
    return str(out).replace("\r\n", "\n")


def test_at_a_terminal_headings_stand_out(talk: tuple[Home, str]) -> None:
    home, session = talk
    command = [*DRAGOMAN[1:], "sessions", "show", session]
    with pexpect.spawn(sys.executable, command, env=surroundings(home), encoding="utf-8", timeout=40) as process:
        assert "\x1b[1mYou\x1b[0m\r\n  Look" in process.read()


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("y", 0),
        pytest.param("yes", 0, marks=pytest.mark.slow),
        pytest.param("n", 1, marks=pytest.mark.slow),
        ("", 1),
        ("\x04", 1),
    ],
)
def test_at_a_terminal_a_deletion_is_asked_about(answer: str, left: int, tmp_path: Path) -> None:
    keep(tmp_path, "sess_1", title=EVIL)
    with terminal(tmp_path, "delete", "sess_1") as process:
        process.expect_exact("Delete this session for good? [y/N] ")
        assert SHOWN in str(process.before)
        process.send(answer if answer == "\x04" else f"{answer}\n")
        rest = process.read()
        process.close()
    assert (process.exitstatus, "nothing was deleted" in rest) == (left, bool(left))
    assert len(run(tmp_path, "list")[1].splitlines()) == left


def test_at_a_terminal_yes_can_be_said_before(tmp_path: Path) -> None:
    keep(tmp_path, "sess_1")
    assert at_terminal(tmp_path, "delete", "sess_1", "--yes").startswith("deleted sess_1  ")
    assert run(tmp_path, "list")[:2] == (0, "")


def test_ctrl_c_while_we_wait_for_an_answer_is_exit_130(tmp_path: Path) -> None:
    keep(tmp_path, "sess_1")
    with terminal(tmp_path, "delete", "sess_1") as process:
        process.expect_exact("[y/N] ")
        process.sendintr()
        rest = process.read()
        process.close()
    assert process.exitstatus == 130
    assert "Traceback" not in rest
    assert len(said(tmp_path, "list").splitlines()) == 1


def test_a_reader_that_has_read_enough_may_leave(tmp_path: Path) -> None:
    keep(tmp_path, "sess_1", *(EventEntry(Idle(stop_reason=f"reason {n}")) for n in range(20_000)))
    environment = {**os.environ, "DRAGOMAN_HOME": str(tmp_path)}
    with fork_server().child(MAIN, "sessions", "export", "sess_1", env=environment) as process:
        assert b"reason 0" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(40) == 0


# -- work that takes longer ------------------------------------------------------------------------------------------

# Every session takes so long to be looked at, and the bar is impatient.
SLOW = """
import sys, time
from dragoman.cli import progress
from dragoman.store import files
read_meta = files.SessionFiles.read_meta
def slowly(self, session_id):
    time.sleep(float(sys.argv[1]))
    return read_meta(self, session_id)
files.SessionFiles.read_meta = slowly
progress.PATIENCE_SECONDS = 0.1
from dragoman.cli.main import main
sys.exit(main(["sessions", "list", "--json"]))
"""
# A hundred of them are half a second, which is long enough for a bar.
SLOWLY = "0.005"
# And twenty seconds, which is longer than a user waits who has pressed Ctrl-C.
ENDLESSLY = "0.2"


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A hundred sessions whose list is lost."""
    home = tmp_path_factory.mktemp("hundred") / "home"

    async def fill(store: SqliteStore) -> None:
        for number in range(100):
            await store.create(SessionMeta(f"s{number:03}", "/project"))

    with_store(home, fill)
    shutil.rmtree(home / "sessions" / "index")
    return home


@pytest.fixture
def without_list(hundred: Home, tmp_path: Path) -> Home:
    """The same, for one test."""
    return Path(shutil.copytree(hundred, tmp_path / "home"))


def slow(home: Home, pace: str) -> Terminal:
    return fork_server().at_terminal(SLOW, pace, env={**os.environ, "DRAGOMAN_HOME": str(home)})


def test_a_list_that_takes_long_to_make_shows_a_bar_and_takes_it_away(without_list: Home) -> None:
    with slow(without_list, SLOWLY) as process:
        process.expect(r"Making the list of sessions \[#+ +\] +\d+% of 100")
        out = str(process.read())
        process.close()
    assert process.exitstatus == 0
    assert len(json.loads(out[out.rindex("\x1b[K") + 3 :])) == 100


def test_ctrl_c_while_the_list_is_made_is_exit_130_at_once_and_leaves_no_half_of_it(without_list: Home) -> None:
    with slow(without_list, ENDLESSLY) as process:
        process.expect_exact("of 100")
        began = time.monotonic()
        process.sendintr()
        rest = process.read()
        process.close()
    assert process.exitstatus == 130
    assert [word for word in ("Traceback", "exception", "Error") if word in rest] == []
    assert time.monotonic() - began < 10
    assert list((without_list / "sessions" / "index").iterdir()) == []
    assert len(said(without_list, "list").splitlines()) == 100


def test_without_a_terminal_there_is_no_bar(without_list: Home) -> None:
    process = fork_server().child(SLOW, SLOWLY, env={**os.environ, "DRAGOMAN_HOME": str(without_list)})
    out, error = process.communicate(timeout=30)
    assert (process.returncode, len(json.loads(out)), error) == (0, 100, b"")
