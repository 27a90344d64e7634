"""Commands that run on in the background: read, waited for, stopped, told of, and ended with their session."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.conversation import Conversation
from dragoman.coder.context import NOT_THE_USER
from dragoman.coder.tools import background
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AnyEvent, Notice, TerminalOutputChunk, TerminalUpdate
from dragoman.vocabulary.requests import CancelTerminal
from dragoman.vocabulary.tools import Cancellable, ExitStatus
from tests.coder.marked_agent import SECONDS, agent, guardians
from tests.support.machine import marked
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.waiting import wait_until
from tests.support.whole_agent import ENVIRONMENT, User, ends, events_of, text, whole

pytestmark = pytest.mark.anyio

SERVER = "echo up; trap 'echo bye; exit 3' TERM; while :; do (trap '' TERM; sleep 0.05); done"


def in_background(command: str, **more: Any) -> dict[str, Any]:
    return bash(command, background=True, **more)


def output(**given: Any) -> dict[str, Any]:
    return call("bash_output", id="bg1", **given)


def timeless(result: str) -> str:
    return re.sub(r"running for \d+ s", "running", result)


def told(model: RecordingModel) -> list[str]:
    """What the model was told of commands that have ended."""
    texts = [text_of(item.content) for item in model.prompts if hasattr(item, "content")]
    return [one for one in texts if "The background command" in one]


@pytest.mark.parametrize("mode", ["full-access", "workspace-write"])
async def test_a_command_runs_on_and_is_read_and_stopped(tmp_path: Path, mode: str) -> None:
    steps = apart([in_background(SERVER), output(), call("bash_stop", id="bg1"), output()])
    model = RecordingModel(steps)
    async with whole(tmp_path, model.make, mode=mode, user=User("allow_once")) as (_, session):
        events = await events_of(session)
    rest = model.results[2]
    assert [timeless(result) for result in model.results] == [
        "up\n[bg1: running]",
        "(no new output)\n[bg1: running]",
        rest,
        "(no new output)\n[bg1: stopped]",
    ]
    # The confinement ends before its command could say something.
    assert rest.endswith("[bg1: stopped]") if mode == "workspace-write" else rest == "bye\n[bg1: stopped]"
    assert {status for _, status in ends(events)} == {"completed"}
    assert (told(model), [event for event in events if isinstance(event, Notice)]) == ([], [])


async def test_it_goes_on_between_turns_and_the_next_one_reads_it(tmp_path: Path) -> None:
    command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; sleep 1000"
    model = RecordingModel([in_background(command)], [output(wait_for="two", timeout=20), {"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
        (tmp_path / "go").touch()
        await events_of(session)
    assert [timeless(result) for result in model.results] == ["one\n[bg1: running]", "two\n[bg1: running]"]


async def test_a_mistake_is_seen_in_the_call_that_starts_it(tmp_path: Path) -> None:
    model = RecordingModel([in_background("echo no such thing; exit 4"), {"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert model.results == ["no such thing\n[bg1: ended with exit code 4]"]
    assert (ends(events), told(model)) == ([("bash", "failed")], [])


async def test_a_text_that_is_not_printed_is_said_to_be_missing(tmp_path: Path) -> None:
    steps = apart([in_background("echo up; sleep 1000"), output(wait_for="never", timeout=1)])
    model = RecordingModel(steps)
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
    assert timeless(model.results[1]) == "(no new output)\n[bg1: running; 'never' was not printed]"


async def test_a_wait_ends_with_the_command(tmp_path: Path) -> None:
    command = "sleep 1.2; echo $((6 * 7))"
    model = RecordingModel(apart([in_background(command), output(timeout=20)]))
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
    assert model.results[1] == "42\n[bg1: ended with exit code 0]"


async def until_ended(session: Conversation) -> None:
    """Wait until the list says that a command has ended with exit code 7."""
    async with asyncio.timeout(SECONDS):
        while "exit code 7" not in text(await events_of(session, "/tasks")):
            pass


WAITS = "until [ -e go ]; do sleep 0.02; done; exit 7"


async def test_an_end_is_told_to_the_model_once_with_the_next_prompt(tmp_path: Path) -> None:
    model = RecordingModel([in_background(WAITS), {"say": "."}], [{"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
        (tmp_path / "go").touch()
        await until_ended(session)
        await events_of(session)
        await events_of(session)
    report = f"The background command bg1 ({WAITS}) is no longer running: ended with exit code 7."
    assert told(model) == [f"{NOT_THE_USER} {report} bash_output returns the rest of its output."]


async def test_an_end_between_turns_is_told_to_the_user_at_once(tmp_path: Path) -> None:
    model = RecordingModel([in_background(f"{WAITS} # mine"), {"say": "."}])
    ended = asyncio.Event()
    seen: list[AnyEvent] = []

    def on_event(session: Conversation, event: AnyEvent) -> None:
        seen.append(event)
        if isinstance(event, Notice):
            ended.set()

    async with whole(tmp_path, model.make, mode="full-access", on_event=on_event) as (_, session):
        await events_of(session)
        (tmp_path / "go").touch()
        await asyncio.wait_for(ended.wait(), SECONDS)
    notices = [event.title for event in seen if isinstance(event, Notice)]
    exits = [event.exit_status for event in seen if isinstance(event, TerminalUpdate)]
    assert notices == [f"Background command bg1: ended with exit code 7: {WAITS} # mine"]
    assert exits == [ExitStatus(exit_code=7)]


async def test_version_1_is_sent_only_its_end_between_turns(tmp_path: Path) -> None:
    """An update of a call outside of a turn is not understood by every client of that version."""
    model = RecordingModel([in_background(f"echo up; {WAITS}"), {"say": "."}])
    ended = asyncio.Event()
    between: list[str] = []

    def on_event(session: Conversation, event: AnyEvent) -> None:
        between.append(type(event).__name__)
        if isinstance(event, Notice):
            ended.set()

    async with whole(tmp_path, model.make, mode="full-access", protocol=1, on_event=on_event) as (_, session):
        await events_of(session)
        between.clear()
        (tmp_path / "go").touch()
        await asyncio.wait_for(ended.wait(), SECONDS)
    assert between == ["Notice"]


async def test_what_is_read_to_its_end_is_not_told_again(tmp_path: Path) -> None:
    model = RecordingModel(apart([in_background("sleep 1.2"), output(timeout=20)]), [{"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
        await events_of(session)
    assert told(model) == []


async def test_its_terminal_shows_what_comes_after_the_call(tmp_path: Path) -> None:
    command = "until [ -e go ]; do sleep 0.02; done; echo later; sleep 1000"
    steps = [in_background(command), {"say": "."}, bash("touch go"), {"say": "."}, output(wait_for="later", timeout=20)]
    model = RecordingModel(steps)
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    names = [type(event).__name__ for event in events]
    chunks = [event for event in events if isinstance(event, TerminalOutputChunk)]
    assert (len(chunks), names.count("TerminalOutputChunk")) == (1, 1)
    opened = next(event for event in events if isinstance(event, TerminalUpdate))
    assert (chunks[0].terminal_id, opened.command) == (opened.terminal_id, command)


async def test_the_user_can_stop_one_by_its_terminal(tmp_path: Path) -> None:
    model = RecordingModel(apart([in_background("sleep 1000"), output(timeout=20)]))
    async with whole(tmp_path, model.make, mode="full-access") as (client, session):
        async for event in session.prompt("go"):
            if isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable):
                await client.ask(CancelTerminal(session.id, event.terminal_id))
    assert model.results[-1] == "(no new output)\n[bg1: stopped by the user]"


async def test_a_cancelled_turn_leaves_it_running(tmp_path: Path) -> None:
    model = RecordingModel([in_background(SERVER), {"say": "."}, bash("sleep 1000")], [output(), {"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        turn = session.prompt("go")
        terminals = 0
        async for event in turn:
            terminals += isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable)
            if terminals == 2:
                await turn.cancel()
        await events_of(session)
    assert timeless(model.results[-1]) == "(no new output)\n[bg1: running]"


async def test_tasks_lists_them_and_stops_one(tmp_path: Path) -> None:
    model = RecordingModel([in_background("sleep 1000 # mine"), {"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        assert text(await events_of(session, "/tasks")) == "Nothing runs in the background.\n"
        await events_of(session)
        assert timeless(text(await events_of(session, "/tasks"))) == "- bg1: running: sleep 1000 # mine\n"
        assert text(await events_of(session, "/tasks stop bg1")) == "bg1: stopped by the user: sleep 1000 # mine\n"
        assert "There is no background command 'bg2'" in text(await events_of(session, "/tasks stop bg2"))


async def test_tasks_shows_the_last_lines_of_one_that_runs_also_of_what_the_model_has_read(tmp_path: Path) -> None:
    command = "for i in 1 2 3; do echo line $i; done; printf 'line 4\\033[2J\\n'; sleep 1000"
    model = RecordingModel(apart([in_background(command)]))
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
        listed = text(await events_of(session, "/tasks"))
    assert "line 4" in model.results[0]
    assert listed.endswith("\n\n      line 2\n      line 3\n      line 4\\u001b[2J\n")


async def test_a_failed_end_is_a_warning_and_one_that_was_meant_is_not(tmp_path: Path) -> None:
    model = RecordingModel([in_background("exit 7"), in_background("true"), in_background("sleep 1000"), {"say": "."}])
    ended: dict[str, str] = {}
    all_told = asyncio.Event()

    def on_event(session: Conversation, event: AnyEvent) -> None:
        if isinstance(event, Notice):
            ended[event.title.split(":")[0]] = event.severity
        if len(ended) == 3:
            all_told.set()

    async with whole(tmp_path, model.make, mode="full-access", on_event=on_event) as (_, session):
        for event in [*await events_of(session), *await events_of(session, "/tasks stop bg3")]:
            on_event(session, event)
        await asyncio.wait_for(all_told.wait(), SECONDS)
    names = [f"Background command bg{number}" for number in (1, 2, 3)]
    assert ended == dict(zip(names, ["warning", "info", "info"], strict=True))


async def test_more_than_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MOST_RUNNING", 2)
    model = RecordingModel(apart([in_background(f"sleep 100{n}") for n in range(3)]))
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
    assert model.results[2] == (
        "2 commands run in the background already: bg1 (sleep 1000), bg2 (sleep 1001). End one with bash_stop."
    )


async def test_a_time_limit_ends_it(tmp_path: Path) -> None:
    model = RecordingModel(apart([in_background("sleep 1000", timeout=1), output(timeout=20)]))
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
    assert "[bg1: stopped after 1 s]" in "".join(model.results)


async def test_long_output_is_bounded_and_a_reader_goes_on_where_it_was(tmp_path: Path) -> None:
    command = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last"
    model = RecordingModel(apart([in_background(command), output(timeout=20), output()]))
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
    read = "".join(model.results)
    assert (read.count("first"), read.count("last"), "cut" in read) == (1, 1, True)
    assert model.results[2] == "(no new output)\n[bg1: ended with exit code 0]"


async def test_it_is_asked_about_as_any_command_and_said_to_run_on(tmp_path: Path) -> None:
    user = User("reject_once")
    model = RecordingModel([in_background("touch new"), {"say": "."}])
    async with whole(tmp_path, model.make, mode="ask", user=user) as (_, session):
        await events_of(session)
    assert [asked.title for asked in user.asked] == ["In the background: touch new"]
    assert list(tmp_path.iterdir()) == []


async def test_helpers_and_the_sandbox_have_none(tmp_path: Path) -> None:
    task = call("agent", prompt="look", description="Look")
    helper = {"agent": {"turns": [{"steps": [in_background("touch new"), {"say": "."}]}]}}
    model = RecordingModel([task], agents=helper)
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert ("bash", "failed") in ends(events)
    sandboxed = RecordingModel([call("sandbox_bash", command="touch new", background=True), {"say": "."}])
    async with whole(tmp_path, sandboxed.make, mode="sandbox", home=tmp_path / "home") as (_, session):
        await events_of(session)
    assert sandboxed.results == [
        "sandbox_bash has no argument 'background'; it takes command, cwd, timeout, unconfined."
    ]


@pytest.mark.parametrize("mode", ["full-access", "workspace-write"])
async def test_the_end_of_the_session_ends_it_with_all_it_started(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mode == "workspace-write":
        need("bwrap")
    mark = f"MARK_OF_A_TEST_{os.getpid()}={tmp_path}"
    monkeypatch.setitem(ENVIRONMENT, *mark.split("="))
    model = RecordingModel([in_background("setsid sleep 1000 & trap '' TERM; sleep 1000; sleep 1000"), {"say": "."}])
    async with whole(tmp_path, model.make, mode=mode, user=User("allow_once")) as (_, session):
        await events_of(session)
        assert len(marked(mark)) >= 2
        await session.close()
        await asyncio.to_thread(wait_until, lambda: marked(mark) == [], seconds=SECONDS)


async def test_what_a_confined_one_has_left_is_taken_back_and_told_when_it_ends(tmp_path: Path) -> None:
    need("bwrap")
    work = tmp_path / "work"
    work.mkdir()
    command = "mkdir -p sub/.vscode && touch sub/.vscode/tasks.json; echo made; sleep 1000"
    steps = apart([in_background(command), call("bash_stop", id="bg1")])
    model = RecordingModel(steps)
    user = User("allow_once")
    async with whole(work, model.make, mode="workspace-write", user=user, home=tmp_path / "home") as (_, session):
        await events_of(session)
    assert "Moved out of the workspace to" in model.results[1]
    assert not (work / "sub" / ".vscode").exists()


def test_the_end_of_stdin_ends_it(tmp_path: Path) -> None:
    with agent(tmp_path, in_background("setsid sleep 1000 & sleep 1000"), mode="full") as (editor, mark):
        editor.open().prompt("go")
        assert len(set(marked(mark)) - {editor.process.pid}) >= 2
        code, _, errors = editor.leave()
        assert (code, errors) == (0, b"")
        wait_until(lambda: marked(mark) == [], seconds=SECONDS)


def test_a_kill_of_the_agent_ends_it(tmp_path: Path) -> None:
    with agent(tmp_path, in_background("setsid sleep 1000 & sleep 1000"), mode="full") as (editor, mark):
        editor.open().prompt("go")
        assert guardians(mark)
        editor.process.kill()
        editor.process.wait()
        editor.left = True
        wait_until(lambda: marked(mark) == [], seconds=SECONDS)
