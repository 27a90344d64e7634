"""Errors that language servers see, behind the results of edits and by the tool `diagnostics`, in the whole agent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.conversation import Conversation
from dragoman.coder.context import ContextUserMessage
from dragoman.coder.language_servers.known import read_specs
from dragoman.coder.language_servers.server import ServerTimeouts
from dragoman.coder.managed_settings import ManagedLanguageServers, ManagedSettings
from dragoman.coder.models.contract import ModelRequest
from dragoman.host.trust import trust
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.tools import ContentItem
from tests.support.language_servers import PATIENT, beside, box_of, results_beside, small
from tests.support.scripted_turns import RecordingModel, call
from tests.support.waiting import until
from tests.support.whole_agent import User, events_of, whole

RUFF = [spec for spec in read_specs({}) if spec.name == "ruff"]


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return call("edit_file", path=path, old_string=old, new_string=new)


def file(folder: Path, name: str, text: str) -> Path:
    (folder / "work").mkdir(exist_ok=True)
    made = folder / "work" / name
    made.write_text(text)
    return made


@pytest.mark.requirement("LSP1")
@pytest.mark.parametrize("switches", [(), ("--pull",)], ids=["sent", "asked"])
async def test_new_errors_stand_behind_an_edit_and_old_ones_do_not(tmp_path: Path, switches: tuple[str, ...]) -> None:
    file(tmp_path, "a.txt", "BAD before\nfine\n")
    steps = [
        edit("a.txt", "fine", "first\n😋 BAD WORRY"),
        edit("a.txt", "first", "zero\nfirst"),
        call("write_file", path="b.txt", content="one\n  BAD\n"),
        call("diagnostics"),
        call("diagnostics", paths=["a.txt"]),
    ]
    first, second, third, every, one = await results_beside(tmp_path, steps, small(*switches))
    assert first.startswith(f"Replaced once in {tmp_path / 'work'}/a.txt.\n\nThe edit brought new errors")
    assert box_of(first) == ["a.txt:3:3: error: 😋 BAD WORRY is not good (small BAD1)"]
    assert second == f"Replaced once in {tmp_path / 'work'}/a.txt."
    assert box_of(third) == ["b.txt:2:3: error: BAD is not good (small BAD1)"]
    of_a = [
        "a.txt:1:1: error: BAD before is not good (small BAD1)",
        "a.txt:4:3: error: 😋 BAD WORRY is not good (small BAD1)",
    ]
    warning = "a.txt:4:7: warning: 😋 BAD WORRY is not good (small WORRY1)"
    assert box_of(every) == [*of_a, "b.txt:2:3: error: BAD is not good (small BAD1)", warning]
    assert box_of(one) == [*of_a, warning]


@pytest.mark.requirement("LSP1")
async def test_ruff_sees_a_name_that_an_edit_has_lost(tmp_path: Path) -> None:
    file(tmp_path, "app.py", "value = 1\nprint(value)\n")
    edited, seen = await results_beside(
        tmp_path, [edit("app.py", "print(value)", "print(valeu)"), call("diagnostics")], *RUFF
    )
    lines = ["app.py:2:7: error: Undefined name `valeu` (Ruff F821)"]
    assert box_of(edited) == lines
    assert box_of(seen) == lines


async def test_the_user_is_shown_new_errors_behind_the_difference_and_programs_get_them_as_values(
    tmp_path: Path,
) -> None:
    file(tmp_path, "a.txt", "fine\n")
    async with beside(tmp_path, [edit("a.txt", "fine", "BAD")], small()) as (session, _):
        events = await events_of(session)
    shown = [event.content for event in events if isinstance(event, ToolCallContentChunk)]
    assert shown == [ContentItem(Text("New errors:\na.txt:1:1: error: BAD is not good (small BAD1)"))]
    (raw,) = [one.raw_output for one in events if isinstance(one, ToolCallUpdate) and one.status == "completed"]
    problem = {"line": 1, "column": 1, "severity": "error", "source": "small", "code": "BAD1"}
    place = f"{tmp_path / 'work'}/a.txt"
    assert raw == {
        "path": place,
        "replaced": 1,
        "problems": [{"path": place, **problem, "message": "BAD is not good"}],
    }


async def test_a_patch_of_several_files_names_the_errors_of_all(tmp_path: Path) -> None:
    file(tmp_path, "a.txt", "one\n")
    file(tmp_path, "gone.txt", "BAD\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+BAD\n*** Add File: b.txt\n+BAD\n"
    patch += "*** Delete File: gone.txt\n*** End Patch"
    work, registry = tmp_path / "work", tmp_path / "trust.json"
    trust(registry, work)
    model = RecordingModel([call("apply_patch", patch=patch), {"say": "."}])
    model.name = "openai/gpt-5"
    own = {"language_servers": lambda: [small()], "trust": str(registry), "server_timeouts": PATIENT}
    async with whole(work, model.make, mode="full-access", home=tmp_path / "home", setup=own) as (_, session):
        await events_of(session)
    assert [line.partition(": ")[0] for line in box_of(model.results[0])] == ["a.txt:1:1", "b.txt:1:1"]


@pytest.mark.requirement("LSP2")
async def test_nothing_is_offered_or_said_in_a_folder_that_is_not_trusted(tmp_path: Path) -> None:
    file(tmp_path, "a.txt", "fine\n")
    steps = [edit("a.txt", "fine", "BAD"), call("diagnostics")]
    async with beside(tmp_path, steps, small(), trusted=False) as (session, model):
        await events_of(session)
        assert model.results == [f"Replaced once in {tmp_path / 'work'}/a.txt.", "There is no tool diagnostics."]


async def test_trust_that_is_given_in_the_session_counts_from_the_next_turn(tmp_path: Path) -> None:
    file(tmp_path, "a.txt", "fine\n")
    turns = [[edit("a.txt", "fine", "fine BAD"), {"say": "."}], [edit("a.txt", "fine", "more BAD\nfine"), {"say": "."}]]
    model, registry = RecordingModel(*turns), tmp_path / "trust.json"
    own = {"language_servers": lambda: [small()], "trust": str(registry), "server_timeouts": PATIENT}
    async with whole(tmp_path / "work", model.make, mode="full-access", home=tmp_path / "home", setup=own) as (
        _,
        session,
    ):
        await events_of(session)
        trust(registry, tmp_path / "work")
        await events_of(session)
    before, after = model.results
    assert box_of(before) == []
    assert box_of(after) == ["a.txt:1:6: error: more BAD is not good (small BAD1)"]


async def test_without_a_server_for_a_file_an_edit_is_as_it_was(tmp_path: Path) -> None:
    file(tmp_path, "a.md", "fine\n")
    steps = [edit("a.md", "fine", "BAD"), call("diagnostics"), call("diagnostics", paths=["a.md"])]
    edited, nothing, named = await results_beside(tmp_path, steps, small())
    assert edited == f"Replaced once in {tmp_path / 'work'}/a.md."
    assert nothing == "No file was edited yet that a language server looks at; name files in 'paths'."
    assert named == "No language server looks at a.md."


def reports(model: RecordingModel, words: str) -> list[str]:
    """What the model was told beside prompts and results, with such words in it."""
    texts = [
        "".join(one.text for one in item.content if isinstance(one, Text))
        for item in model.prompts
        if isinstance(item, ContextUserMessage)
    ]
    return [text for text in texts if words in text]


async def prompt_until_told(session: Conversation, model: RecordingModel, words: str) -> None:
    """Prompt until the model is told: when a server has spoken, no event says."""
    async with asyncio.timeout(30):
        while True:
            await events_of(session)
            if reports(model, words):
                return
            await asyncio.sleep(0.02)


LATE = "came with earlier edits"


@pytest.mark.requirement("LSP5")
async def test_what_is_found_late_is_told_before_the_next_request_and_once(tmp_path: Path) -> None:
    file(tmp_path, "a.txt", "fine\n")
    gate = tmp_path / "work" / "gate"
    timeouts = ServerTimeouts(edit=0.05, least=0.05)
    turns = [[edit("a.txt", "fine", "SLOW BAD"), {"say": "."}], [{"say": "one"}], [{"say": "two"}]]
    model = RecordingModel(*turns)
    registry = tmp_path / "trust.json"
    trust(registry, tmp_path / "work")
    own = {
        "language_servers": lambda: [small("--gate", str(gate))],
        "trust": str(registry),
        "server_timeouts": timeouts,
    }
    async with whole(tmp_path / "work", model.make, mode="full-access", home=tmp_path / "home", setup=own) as (
        _,
        session,
    ):
        await events_of(session)
        assert box_of(model.results[0]) == []
        gate.write_text("")
        await prompt_until_told(session, model, LATE)
        await events_of(session)
    (told,) = reports(model, LATE)
    assert box_of(told) == ["a.txt:1:6: error: SLOW BAD is not good (small BAD1)"]


@pytest.mark.requirement("LSP3")
async def test_in_a_sandbox_nothing_is_asked_and_the_tool_is_not_offered(tmp_path: Path) -> None:
    file(tmp_path, "a.txt", "fine\n")
    steps = [call("sandbox_edit_file", path="a.txt", old_string="fine", new_string="BAD"), call("diagnostics")]
    edited, refused = await results_beside(
        tmp_path, steps, small(), mode="sandbox", user=User("allow_once"), timeouts=PATIENT
    )
    assert edited == f"Replaced once in {tmp_path / 'work'}/a.txt."
    assert refused == "Permission denied. Mode sandbox does not allow it."


@pytest.mark.requirement("LSP4")
async def test_a_cancel_ends_the_wait_of_an_edit_and_the_edit_is_done(tmp_path: Path) -> None:
    made = file(tmp_path, "a.txt", "fine\n")
    async with beside(tmp_path, [edit("a.txt", "fine", "BAD")], small("--mute")) as (session, _):
        turn = session.prompt("go")
        reasons: list[object] = []
        async with asyncio.timeout(PATIENT.edit / 2):
            following = asyncio.ensure_future(turn.read())
            await until(lambda: made.read_text() == "BAD\n")
            await turn.cancel()
            reasons.append((await following).stop_reason)
    assert reasons == ["cancelled"]


@pytest.mark.parametrize(
    "managed",
    [ManagedLanguageServers(names=()), ManagedLanguageServers(commands=("/usr/bin/gopls *",))],
    ids=["names", "commands"],
)
async def test_the_administrator_can_forbid_them(tmp_path: Path, managed: ManagedLanguageServers) -> None:
    file(tmp_path, "a.txt", "fine\n")
    steps = [edit("a.txt", "fine", "BAD"), call("diagnostics")]
    settings = ManagedSettings(language_servers=managed)
    results = await results_beside(tmp_path, steps, small(), managed=settings)
    assert results == [f"Replaced once in {tmp_path / 'work'}/a.txt.", "There is no tool diagnostics."]


class Offered(RecordingModel):
    """A model that keeps which tools it was offered, request by request."""

    def __init__(self, *turns: Any) -> None:
        super().__init__(*turns)
        self.offered: list[list[str]] = []

    def respond(self, request: ModelRequest) -> Any:
        self.offered.append([f"{tool.name} {tool.description} {tool.schema}" for tool in request.tools])
        return super().respond(request)


@pytest.mark.requirement("LSP6")
async def test_the_tools_are_the_same_in_every_request_whatever_becomes_of_servers(tmp_path: Path) -> None:
    file(tmp_path, "a.txt", "fine\n")
    registry = tmp_path / "trust.json"
    trust(registry, tmp_path / "work")
    model = Offered([edit("a.txt", "fine", "CRASH"), {"say": "."}], [{"say": "."}])
    own = {
        "language_servers": lambda: [small("--crash", "CRASH")],
        "trust": str(registry),
        "server_timeouts": PATIENT,
    }
    async with whole(tmp_path / "work", model.make, mode="full-access", home=tmp_path / "home", setup=own) as (
        _,
        session,
    ):
        await events_of(session)
        registry.unlink()
        await events_of(session)
    first, *others = model.offered
    assert any(tool.startswith("diagnostics ") for tool in first)
    assert others == [first] * len(others)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"paths": []}, "as a list of texts"),
        ({"paths": "a.txt"}, "as a list of texts"),
        ({"paths": ["a"] * 21}, "takes up to 20 paths"),
        ({"files": ["a"]}, "has no argument 'files'"),
        ({"paths": ["../out.txt"]}, "outside of the workspace"),
        ({"paths": ["missing.txt"]}, "no such file"),
    ],
)
async def test_a_call_that_cannot_be_answered_says_why(tmp_path: Path, given: dict[str, Any], reason: str) -> None:
    (result,) = await results_beside(tmp_path, [call("diagnostics", **given)], small())
    assert reason in result


async def test_a_file_with_credentials_is_asked_about(tmp_path: Path) -> None:
    file(tmp_path, ".env", "BAD=1\n")
    user = User("reject_once")
    steps = [call("diagnostics", paths=[".env"])]
    (result,) = await results_beside(tmp_path, steps, small(files=(".env",)), mode="ask", user=user)
    assert [asked.title for asked in user.asked] == ["Diagnostics of .env, which may hold credentials"]
    assert result == "Permission denied. The user said no."


@pytest.mark.requirement("LSP3")
async def test_helpers_are_told_of_errors_too_and_share_the_servers(tmp_path: Path) -> None:
    file(tmp_path, "a.txt", "fine\n")
    agents = {"helper": {"turns": [{"steps": [edit("a.txt", "fine", "BAD"), {"say": "done"}]}]}}
    steps = [call("agent", prompt="p", description="d", name="helper"), call("diagnostics")]
    work, registry = tmp_path / "work", tmp_path / "trust.json"
    trust(registry, work)
    model = RecordingModel([piece for step in steps for piece in (step, {"say": "."})], agents=agents)
    own = {"language_servers": lambda: [small()], "trust": str(registry), "server_timeouts": PATIENT}
    async with whole(work, model.make, mode="full-access", home=tmp_path / "home", setup=own) as (_, session):
        await events_of(session)
    assert box_of(model.results[-1]) == ["a.txt:1:1: error: BAD is not good (small BAD1)"]
