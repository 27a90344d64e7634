"""Hooks of the user, in the exact forms of Claude Code's files: what they are told, and what comes of what they say."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextUserMessage
from dragoman.host.process_tree import living
from dragoman.host.trust import trust
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AnyEvent, Idle, Notice, ToolCallUpdate
from tests.support.needs import ROOT
from tests.support.scripted_turns import RecordingModel, bash, call
from tests.support.waiting import until
from tests.support.whole_agent import User, ends, events_of, text, whole

pytestmark = pytest.mark.anyio


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def write_hooks(home: Path, **events: Any) -> None:
    """Write the user's hooks: by event, a list of groups, or one command for every subject."""
    hooks = {
        event: [{"hooks": [{"type": "command", "command": given}]}] if isinstance(given, str) else given
        for event, given in events.items()
    }
    (home / "hooks.json").write_text(json.dumps({"hooks": hooks}))


def group(matcher: str, command: str, **more: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}


def saying(**said: Any) -> str:
    """A command that prints this as JSON."""
    return f"echo {shlex.quote(json.dumps(said))}"


def deciding(decision: str, reason: str = "", **more: Any) -> str:
    """A command that decides about a call, in the form of the documentation."""
    own = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason, **more}
    return saying(hookSpecificOutput=own)


def told(folder: Path) -> list[dict[str, Any]]:
    """What the hooks were given that append their stdin to a file."""
    file = folder / "told.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def keeping(folder: Path) -> str:
    return f"cat >> {shlex.quote(str(folder / 'told.jsonl'))}; echo >> {shlex.quote(str(folder / 'told.jsonl'))}"


def notices(events: list[AnyEvent]) -> list[str]:
    return [event.title for event in events if isinstance(event, Notice)]


def end(events: list[AnyEvent]) -> object:
    return [event.stop_reason for event in events if isinstance(event, Idle)][-1]


def prompts(model: RecordingModel) -> list[str]:
    return [text_of(one.content) for one in model.prompts if isinstance(one, ContextUserMessage)]


# -- what they are told ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("HK1")
async def test_hooks_of_each_event_are_told_what_the_form_says(tmp_path: Path, work: Path, home: Path) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    write_hooks(home, **dict.fromkeys(events, keeping(tmp_path)))
    model = RecordingModel([bash("echo hello")], [{"say": "Done."}])
    async with whole(work, model.make, home=home, user=User("allow_once")) as (_, session):
        await events_of(session, "say hello")
        session_id = session.id
    start, prompt, before, after, stop, over = told(tmp_path)
    common = {"session_id": session_id, "transcript_path": "", "cwd": str(work), "permission_mode": "default"}
    common |= {"mode": "ask"}
    assert start == {**common, "hook_event_name": "SessionStart", "source": "startup", "model": "script"}
    assert prompt == {**common, "hook_event_name": "UserPromptSubmit", "prompt": "say hello"}
    use = before.pop("tool_use_id")
    called = {**common, "tool_name": "Bash", "tool_input": {"command": "echo hello"}}
    assert before == {**called, "hook_event_name": "PreToolUse"}
    response = {"success": True, "text": "hello\n", "stdout": "hello\n", "stderr": "", "interrupted": False}
    assert after == {**called, "hook_event_name": "PostToolUse", "tool_use_id": use, "tool_response": response}
    ended = {"stop_hook_active": False, "last_assistant_message": ""}
    assert {**stop, "last_assistant_message": ""} == {**common, "hook_event_name": "Stop", **ended}
    assert over == {**common, "hook_event_name": "SessionEnd", "reason": "other"}


@pytest.mark.parametrize(
    ("matcher", "tools"),
    [
        ("Bash", ["Bash"]),
        ("bash", ["Bash"]),
        ("Write|Read", ["Write", "Read"]),
        ("write_file", ["Write"]),
        ("", ["Bash", "Write", "Read"]),
        ("*", ["Bash", "Write", "Read"]),
        ("^Re", ["Read"]),
        ("mcp__.*", []),
    ],
)
async def test_matchers_take_our_names_and_claudes(
    tmp_path: Path, work: Path, home: Path, matcher: str, tools: list[str]
) -> None:
    write_hooks(home, PreToolUse=[group(matcher, keeping(tmp_path))])
    model = RecordingModel(
        [bash("echo hello"), call("write_file", path="a.txt", content="x"), call("read_file", path="a.txt")]
    )
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert [one["tool_name"] for one in told(tmp_path)] == tools


async def test_files_are_told_by_their_whole_paths_in_claudes_names(tmp_path: Path, work: Path, home: Path) -> None:
    write_hooks(home, PreToolUse=keeping(tmp_path))
    (work / "b.txt").write_text("one\ntwo\nthree\nfour\n")
    model = RecordingModel(
        [
            call("write_file", path="a.txt", content="x"),
            call("edit_file", path="a.txt", old_string="x", new_string="y"),
            call("read_file", path="b.txt", start_line=2, end_line=3),
        ]
    )
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    path = str(work / "a.txt")
    assert [(one["tool_name"], one["tool_input"]) for one in told(tmp_path)] == [
        ("Write", {"file_path": path, "content": "x"}),
        ("Edit", {"file_path": path, "old_string": "x", "new_string": "y"}),
        ("Read", {"file_path": str(work / "b.txt"), "offset": 2, "limit": 2}),
    ]


async def test_a_hook_knows_its_project_and_no_keys(tmp_path: Path, work: Path, home: Path) -> None:
    out = shlex.quote(str(tmp_path / "env"))
    write_hooks(home, UserPromptSubmit=f'printf "%s " "$CLAUDE_PROJECT_DIR" "$PWD" "$OPENAI_API_KEY" > {out}')
    async with whole(work, RecordingModel([]).make, home=home) as (_, session):
        await events_of(session)
    assert (tmp_path / "env").read_text() == f"{work} {work}  "


# -- before a call ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("HK2")
@pytest.mark.parametrize(
    "command",
    [
        "echo 'Use the script.' >&2; exit 2",
        deciding("deny", "Use the script."),
        saying(decision="block", reason="Use the script."),
    ],
)
@pytest.mark.parametrize("mode", ["ask", "full-access"])
async def test_a_hook_denies_a_call_and_the_model_is_told_why(work: Path, home: Path, command: str, mode: str) -> None:
    write_hooks(home, PreToolUse=[group("Bash", command)])
    user, model = User("allow_once"), RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user, mode=mode) as (_, session):
        events = await events_of(session)
    assert ((work / "ran").exists(), user.asked, ends(events)) == (False, [], [("bash", "failed")])
    assert model.results == ["Permission denied. A hook of the user denies this: Use the script."]


@pytest.mark.requirement("HK2")
async def test_a_hook_asks_where_the_mode_does_not_and_always_is_not_offered(work: Path, home: Path) -> None:
    write_hooks(home, PreToolUse=[group("Bash", deciding("ask", "Is it Friday?"))])
    user, model = User("reject_once"), RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user, mode="full-access") as (_, session):
        await events_of(session)
    (asked,) = user.asked
    assert (asked.title, asked.description) == (
        "touch ran",
        "a hook of the user wants a question about this: Is it Friday?",
    )
    assert [option.kind for option in asked.options if option.kind == "allow_always"] == []
    assert (work / "ran").exists() is False


@pytest.mark.requirement("HK3")
async def test_an_allow_of_the_users_hook_answers_the_modes_question(work: Path, home: Path) -> None:
    write_hooks(home, PreToolUse=[group("Bash", deciding("allow"))])
    user, model = User("reject_once"), RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user) as (_, session):
        await events_of(session)
    assert (user.asked, (work / "ran").exists()) == ([], True)


@pytest.mark.requirement("HK3")
@pytest.mark.parametrize(
    ("mode", "step", "path"),
    [
        ("read-only", bash("touch ran"), "ran"),
        ("plan", call("write_file", path="ran", content="x"), "ran"),
        ("safe", bash("touch ran"), "ran"),
        ("workspace-write", call("write_file", path=".claude/settings.json", content="{}"), ".claude/settings.json"),
        ("workspace-write", call("write_file", path=".agents/hooks.json", content="{}"), ".agents/hooks.json"),
        ("ask", call("write_file", path=".git/hooks/pre-commit", content="x"), ".git/hooks/pre-commit"),
        ("full-access", bash("rm -rf --no-preserve-root /"), "ran"),
    ],
)
async def test_an_allow_widens_nothing_that_is_denied_or_guarded(
    work: Path, home: Path, mode: str, step: Any, path: str
) -> None:
    write_hooks(home, PreToolUse=deciding("allow"))
    model = RecordingModel([step], [{"say": "."}])
    async with whole(work, model.make, home=home, user=User("reject_once"), mode=mode) as (_, session):
        await events_of(session)
    assert (work / path).exists() is False
    assert model.results[0].startswith("Permission denied.")


@pytest.mark.requirement("HK4")
async def test_another_input_is_shown_judged_and_run_as_a_new_call(tmp_path: Path, work: Path, home: Path) -> None:
    write_hooks(
        home,
        PreToolUse=[
            group("Bash", deciding("allow", updatedInput={"command": "touch other"})),
            group("Bash", keeping(tmp_path)),
        ],
    )
    user, model = User("allow_once"), RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user, mode="ask") as (_, session):
        events = await events_of(session)
    assert [one["tool_input"] for one in told(tmp_path)] == [{"command": "touch ran"}, {"command": "touch other"}]
    assert ((work / "ran").exists(), (work / "other").exists()) == (False, True)
    shown = [event.title for event in events if isinstance(event, ToolCallUpdate) and event.title]
    assert (shown[0], shown[-1]) == ("touch ran", "touch other")


@pytest.mark.requirement("HK4")
async def test_another_input_gets_no_yes_that_was_given_to_the_first(work: Path, home: Path) -> None:
    write_hooks(home, PreToolUse=[group("Read", saying(hookSpecificOutput={"updatedInput": {"file_path": ".env"}}))])
    (work / "a.txt").write_text("harmless")
    (work / ".env").write_text("SECRET=1")
    trust(home / "trust.json", work)  # the hook names a file of the folder
    user, model = User("reject_once"), RecordingModel([call("read_file", path="a.txt")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user) as (_, session):
        await events_of(session)
    assert [asked.title for asked in user.asked] == ["Read .env, which may hold credentials"]
    assert model.results == ["Permission denied. The user said no."]


async def test_an_input_that_no_tool_takes_runs_nothing(work: Path, home: Path) -> None:
    write_hooks(home, PreToolUse=saying(hookSpecificOutput={"updatedInput": {"line": "touch other"}}))
    model = RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert (work / "ran").exists() is False
    assert model.results[0].startswith("A hook of the user has changed the input of this call: ")


@pytest.mark.requirement("HK5")
@pytest.mark.parametrize(
    ("command", "more", "why"),
    [
        ("exec sleep 60", {"timeout": 0.2}, "it was ended after 0.2 s, its time limit"),
        ("no-such-program-here", {}, "its program was not found"),
        ("kill -9 $$", {}, "a signal ended it"),
        ("echo '{not json'", {}, "its output is no JSON"),
        ('echo \'{"hookSpecificOutput": {"permissionDecision": "sure"}}\'', {}, "its permissionDecision is none"),
        ("head -c 300000 /dev/zero", {}, "it printed more than 256 KiB"),
    ],
)
async def test_a_hook_without_an_answer_makes_a_question_and_is_told_of_once(
    work: Path, home: Path, command: str, more: dict[str, Any], why: str
) -> None:
    write_hooks(home, PreToolUse=[group("Bash", command, **more)])
    user, model = User("reject_once"), RecordingModel([bash("touch ran"), bash("touch ran too")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user, mode="full-access") as (_, session):
        events = await events_of(session)
    assert [asked.title for asked in user.asked] == ["touch ran", "touch ran too"]
    assert (work / "ran").exists() is False
    (said,) = notices(events)
    assert said.startswith("A hook of the user at PreToolUse failed, in ") and why in said


@pytest.mark.requirement("HK5")
async def test_another_exit_code_changes_nothing_and_is_told_of_once(work: Path, home: Path) -> None:
    write_hooks(home, PreToolUse="echo 'line one' >&2; echo two >&2; exit 1")
    user, model = User("reject_once"), RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user) as (_, session):
        events = await events_of(session)
    assert ([asked.title for asked in user.asked], (work / "ran").exists()) == (["touch ran"], False)
    (said,) = notices(events)
    assert said.endswith("it ended with exit code 1: line one")


async def test_hooks_of_an_event_run_together_and_the_same_command_once(tmp_path: Path, work: Path, home: Path) -> None:
    first, second = shlex.quote(str(tmp_path / "first")), shlex.quote(str(tmp_path / "second"))
    # Each waits for the other: they end if they run together.
    meeting = [
        f"touch {mine}; until [ -e {other} ]; do sleep 0.01; done" for mine, other in ((first, second), (second, first))
    ]
    count = f"echo x >> {shlex.quote(str(tmp_path / 'count'))}"
    write_hooks(home, PreToolUse=[group("Bash", one) for one in (*meeting, count, count)])
    model = RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert ((work / "ran").exists(), (tmp_path / "count").read_text()) == (True, "x\n")


async def test_a_patch_is_told_file_by_file(tmp_path: Path, work: Path, home: Path) -> None:
    guard = 'case "$(cat)" in *.lock\\"*) echo "It is locked." >&2; exit 2;; esac'
    write_hooks(home, PreToolUse=[group("Edit|Write", guard)])
    patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Add File: b.lock\n+y\n*** End Patch\n"
    model = RecordingModel([call("apply_patch", patch=patch)], [{"say": "."}])
    model.name = "openai/gpt-5"
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert (model.results[0], [*work.iterdir()]) == (
        "Permission denied. A hook of the user denies this: It is locked.",
        [],
    )


async def test_nothing_waits_for_a_hook_that_is_asynchronous(tmp_path: Path, work: Path, home: Path) -> None:
    """It waits for what the call does, so it would never end before it."""
    done = tmp_path / "done"
    line = f"until [ -e {shlex.quote(str(work / 'ran'))} ]; do sleep 0.01; done; touch {shlex.quote(str(done))}; exit 2"
    write_hooks(home, PreToolUse=[group("Bash", line, **{"async": True})])
    async with whole(work, RecordingModel([bash("touch ran")]).make, home=home, mode="full-access") as (_, session):
        await events_of(session)
        await until(done.exists, "the hook ran beside the turn")


@pytest.mark.parametrize(("rule", "runs"), [("Bash(git *)", ["git status"]), ("Bash", ["git status", "echo hi"])])
async def test_a_condition_narrows_a_hook_to_commands(
    tmp_path: Path, work: Path, home: Path, rule: str, runs: list[str]
) -> None:
    write_hooks(home, PreToolUse=[group("Bash", keeping(tmp_path), **{"if": rule})])
    steps = [bash("git status"), bash("echo hi")]
    async with whole(work, RecordingModel(steps).make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert [one["tool_input"]["command"] for one in told(tmp_path)] == runs


# -- after a call ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("HK6")
@pytest.mark.parametrize(
    "command",
    [
        "echo 'Line 1 is too long.' >&2; exit 2",
        saying(decision="block", reason="Line 1 is too long."),
        saying(hookSpecificOutput={"hookEventName": "PostToolUse", "additionalContext": "Line 1 is too long."}),
    ],
)
async def test_what_a_hook_says_behind_a_call_stands_in_its_result(work: Path, home: Path, command: str) -> None:
    write_hooks(home, PostToolUse=[group("Write", command)])
    model = RecordingModel([call("write_file", path="a.txt", content="x")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        events = await events_of(session)
    assert (work / "a.txt").read_text() == "x"
    assert model.results[0].endswith("\n<hook>\nLine 1 is too long.\n</hook>")
    assert ends(events) == [("write_file", "completed")]


async def test_a_failed_call_has_an_event_of_its_own(tmp_path: Path, work: Path, home: Path) -> None:
    write_hooks(home, PostToolUse=keeping(tmp_path), PostToolUseFailure=keeping(tmp_path))
    model = RecordingModel([bash("echo no; exit 3")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    (said,) = told(tmp_path)
    assert (said["hook_event_name"], said["is_interrupt"], "no" in said["error"]) == ("PostToolUseFailure", False, True)


async def test_a_hook_that_stops_ends_the_turn_behind_the_call(work: Path, home: Path) -> None:
    write_hooks(home, PostToolUse=saying(**{"continue": False}, stopReason="The budget is used up."))
    model = RecordingModel([bash("touch one")], [bash("touch two")])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        events = await events_of(session)
    assert ((work / "one").exists(), (work / "two").exists()) == (True, False)
    assert notices(events) == ["A hook of the user has stopped the turn: The budget is used up."]
    assert end(events) == "end_turn"


# -- prompts, ends, starts -------------------------------------------------------------------------------------------


@pytest.mark.requirement("HK7")
@pytest.mark.parametrize("command", ["echo 'No names.' >&2; exit 2", saying(decision="block", reason="No names.")])
async def test_a_prompt_that_is_blocked_does_not_go_to_the_model(work: Path, home: Path, command: str) -> None:
    write_hooks(home, UserPromptSubmit=command)
    model = RecordingModel([{"say": "hm"}])
    async with whole(work, model.make, home=home) as (_, session):
        events = await events_of(session, "who is Anna?")
    assert (model.prompts, text(events)) == ([], "A hook of the user has held this prompt back: No names.\n")
    assert end(events) == "refusal"


@pytest.mark.requirement("HK7")
@pytest.mark.parametrize(
    "command",
    [
        "echo 'Today is Friday.'",
        saying(hookSpecificOutput={"hookEventName": "UserPromptSubmit", "additionalContext": "Today is Friday."}),
    ],
)
async def test_a_hook_adds_to_a_prompt_and_it_is_not_taken_for_the_users_words(
    work: Path, home: Path, command: str
) -> None:
    write_hooks(home, UserPromptSubmit=command)
    model = RecordingModel([{"say": "hm"}])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session, "which day is it?")
    added = "Hooks at UserPromptSubmit have added this.\n<hook>\nToday is Friday.\n</hook>\n"
    assert prompts(model)[-2:] == [f"[This is Dragoman, not the user.] {added}", "which day is it?"]


@pytest.mark.requirement("HK8")
async def test_a_hook_at_the_end_has_the_turn_go_on_with_its_reason(tmp_path: Path, work: Path, home: Path) -> None:
    block = saying(decision="block", reason="The tests fail.")
    write_hooks(home, Stop=f"{keeping(tmp_path)}; [ $(wc -l < {tmp_path}/told.jsonl) -gt 1 ] || {block}")
    model = RecordingModel([{"say": "Done."}], [{"say": "hm"}])
    async with whole(work, model.make, home=home) as (_, session):
        events = await events_of(session, "go")
    assert [one["stop_hook_active"] for one in told(tmp_path)] == [False, True]
    assert "not over" in prompts(model)[-1] and "The tests fail." in prompts(model)[-1]
    assert end(events) == "end_turn"


@pytest.mark.requirement("HK8")
async def test_a_turn_goes_on_so_often_and_not_for_ever(tmp_path: Path, work: Path, home: Path) -> None:
    write_hooks(home, Stop=f"{keeping(tmp_path)}; {saying(decision='block', reason='More.')}")
    async with whole(work, RecordingModel([{"say": "Done."}]).make, home=home) as (_, session):
        events = await events_of(session, "go")
    assert len(told(tmp_path)) == 9
    assert notices(events) == ["Hooks have let this go on 8 times; it ends although they want more."]
    assert end(events) == "end_turn"


async def test_what_a_hook_prints_at_the_start_is_told_to_the_model_once(work: Path, home: Path) -> None:
    write_hooks(home, SessionStart=[group("startup", "echo 'Branch: main'"), group("resume", "echo 'Again'")])
    model = RecordingModel([{"say": "hm"}])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session, "one")
        await events_of(session, "two")
    assert sum("Branch: main" in said for said in prompts(model)) == 1
    assert sum("Again" in said for said in prompts(model)) == 0


async def test_clear_runs_the_hooks_of_a_start_again(tmp_path: Path, work: Path, home: Path) -> None:
    write_hooks(home, SessionStart=keeping(tmp_path), SessionEnd=keeping(tmp_path))
    async with whole(work, RecordingModel([]).make, home=home) as (_, session):
        await events_of(session, "/clear")
        said = [(one["hook_event_name"], one.get("source") or one.get("reason")) for one in told(tmp_path)]
    assert said == [("SessionStart", "startup"), ("SessionEnd", "clear"), ("SessionStart", "clear")]


async def test_a_summary_is_told_before_and_starts_again_behind_it(tmp_path: Path, work: Path, home: Path) -> None:
    write_hooks(
        home, PreCompact=[group("manual", keeping(tmp_path))], SessionStart=[group("compact", "echo 'Recall.'")]
    )
    model = RecordingModel([{"say": "one"}])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session, "tell me something")
        await events_of(session, "/compact the names")
        await events_of(session, "and now?")
    (said,) = told(tmp_path)
    assert (said["trigger"], said["custom_instructions"]) == ("manual", "the names")
    assert any("Recall." in one for one in prompts(model))


async def test_a_question_to_the_user_is_notified_beside_the_turn(tmp_path: Path, work: Path, home: Path) -> None:
    done = shlex.quote(str(tmp_path / "done"))
    write_hooks(home, Notification=[group("permission_prompt", f"cat > {done}.part; mv {done}.part {done}")])
    model = RecordingModel([bash("touch ran")], [{"say": "."}])

    class Waiting(User):
        async def permission(self, request: Any) -> Any:
            await until((tmp_path / "done").exists, "the hook was told")
            return await super().permission(request)

    async with whole(work, model.make, home=home, user=Waiting("allow_once")) as (_, session):
        await events_of(session)
    said = json.loads((tmp_path / "done").read_text())
    assert (said["notification_type"], said["message"]) == (
        "permission_prompt",
        "Dragoman needs your permission: touch ran",
    )


async def test_a_helper_has_hooks_around_its_calls_and_at_its_end(tmp_path: Path, work: Path, home: Path) -> None:
    write_hooks(home, PreToolUse=[group("Bash", keeping(tmp_path))], SubagentStop=keeping(tmp_path))
    model = RecordingModel(
        [call("agent", description="Look", prompt="Look around")],
        agents={"agent": {"turns": [{"steps": [bash("echo hi")]}]}},
    )
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    before, stop = told(tmp_path)
    assert (before["tool_name"], before["agent_id"], before["agent_type"]) == ("Bash", "agent", "agent")
    assert (stop["hook_event_name"], stop["agent_type"], stop["stop_hook_active"]) == ("SubagentStop", "agent", False)


# -- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("HK9")
async def test_a_cancelled_turn_ends_a_hook_with_all_that_it_started(tmp_path: Path, work: Path, home: Path) -> None:
    pid = tmp_path / "pid"
    write_hooks(home, PreToolUse=f"sleep 1000 & echo $! > {shlex.quote(str(pid))}.part; mv {pid}.part {pid}; wait")
    model = RecordingModel([bash("touch ran")])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        turn = session.prompt("go")
        await until(pid.exists, "the hook runs")
        await turn.cancel()
        async for _ in turn:
            pass
        assert turn.stop_reason == "cancelled"
        assert int(pid.read_text()) not in {process.pid for process in living()}
    assert (work / "ran").exists() is False


PLAIN = """
import asyncio, sys
from pathlib import Path
from tests.support.scripted_turns import RecordingModel, bash
from tests.support.whole_agent import events_of, whole

async def main(folder):
    async with whole(folder, RecordingModel([bash("echo hi")]).make, home=folder, mode="full-access") as (_, session):
        await events_of(session)

asyncio.run(main(Path(sys.argv[1])))
print(*(name for name in sys.modules if name.startswith("dragoman.coder.hook")))
"""


def test_a_session_without_hooks_imports_nothing_of_them(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", PLAIN, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["dragoman.coder.hook_verdict"]
