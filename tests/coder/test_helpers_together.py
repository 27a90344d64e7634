"""Several helpers in one response: they run at the same time, each is shown and stopped alone, one asks at a time."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder import toolbox
from dragoman.coder.models.contract import ModelRequest, Piece, TextDelta, UsageReported
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.vocabulary.events import HELPER_OF, Idle, TerminalUpdate, ToolCallUpdate, Usage
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from dragoman.vocabulary.tools import Cancellable
from tests.coder.marked_agent import SECONDS
from tests.support.scripted_turns import RecordingModel, bash, call
from tests.support.whole_agent import ends, events_of, whole

pytestmark = pytest.mark.anyio


def task(name: str) -> dict[str, Any]:
    return call("agent", prompt="go", description=f"Task {name}", name=name)


def playing(*steps: Any) -> dict[str, Any]:
    return {"turns": [{"steps": [*steps, {"say": "Report."}]}]}


class Meeting(ScriptModel):
    """A model whose helpers answer when so many of them are at work at the same time."""

    def __init__(self, helpers: int, *, meet: int) -> None:
        steps = [call("agent", prompt=f"go {number}", description="d") for number in range(helpers)]
        super().__init__(parse({"turns": [{"steps": [*steps, {"say": "Done."}]}]}))
        self.room = asyncio.Barrier(meet)
        self.now = self.most = 0

    def make(self, name: str) -> ScriptModel:
        return self

    def assistant(self, name: str) -> ScriptModel:
        return Guest(self)


class Guest(ScriptModel):
    """A helper of that model."""

    def __init__(self, meeting: Meeting) -> None:
        super().__init__(parse({"turns": [{"steps": []}]}))
        self._meeting = meeting

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self._meeting.now += 1
        self._meeting.most = max(self._meeting.most, self._meeting.now)
        await self._meeting.room.wait()
        self._meeting.now -= 1
        yield TextDelta("Report.")
        yield UsageReported(10, 1)


async def test_helpers_of_one_response_run_at_the_same_time_and_all_tokens_count(tmp_path: Path) -> None:
    model = Meeting(3, meet=3)
    async with asyncio.timeout(SECONDS), whole(tmp_path, model.make) as (_, session):
        events = await events_of(session)
    assert ends(events) == [("agent", "completed")] * 3
    assert [event.usage for event in events if isinstance(event, Idle)] == [Usage(33, 30, 3)]


async def test_no_more_than_the_limit_run_at_the_same_time(tmp_path: Path) -> None:
    model = Meeting(2 * toolbox.HELPERS, meet=toolbox.HELPERS)
    async with asyncio.timeout(SECONDS), whole(tmp_path, model.make) as (_, session):
        events = await events_of(session)
    assert (len(ends(events)), model.most) == (2 * toolbox.HELPERS, toolbox.HELPERS)


async def test_in_a_sandbox_they_run_one_after_the_other(tmp_path: Path) -> None:
    model = Meeting(3, meet=1)
    async with whole(tmp_path, model.make, mode="sandbox", home=tmp_path / "home") as (_, session):
        events = await events_of(session)
    assert (len(ends(events)), model.most) == (3, 1)


async def test_each_has_a_label_of_its_own_and_its_calls_name_the_call_that_started_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    calls = [call("agent", prompt="go", description="d")] * 2
    wait = bash("touch $$.here; until [ $(ls *.here | wc -l) = 2 ]; do sleep 0.02; done")
    turn = playing(wait)["turns"][0]
    model = RecordingModel([*calls, {"say": "."}], agents={"agent": {"turns": [turn]}})
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    opened = [event for event in events if isinstance(event, ToolCallUpdate) and isinstance(event.name, str)]
    titles = {event.title for event in opened if event.name == "bash"}
    command = wait["input"]["command"]
    assert titles == {f"agent: {command}", f"agent 2: {command}"}
    starters = [event.tool_call_id for event in opened if event.name == "agent"]
    named = [dict(event.meta or {}).get(HELPER_OF) for event in opened if event.name == "bash"]
    assert sorted(map(str, named)) == sorted(starters)


class SlowUser:
    """Answers when all calls are shown; how many questions were open at a time."""

    def __init__(self, answer: str) -> None:
        self.titles: list[object] = []
        self.all_shown = asyncio.Event()
        self.open = self.most = 0
        self._answer = answer

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        self.titles.append(request.title)
        self.open += 1
        self.most = max(self.most, self.open)
        await self.all_shown.wait()
        self.open -= 1
        return next(option for option in request.options if option.kind == self._answer)


async def asked_by_three(tmp_path: Path, answer: str, *commands: str) -> SlowUser:
    user: Any = SlowUser(answer)
    agents = {str(n): playing(bash(command)) for n, command in enumerate(commands)}
    model = RecordingModel([*(task(name) for name in agents), {"say": "."}], agents=agents)
    shown = set()
    async with whole(tmp_path, model.make, user=user) as (_, session):
        async for event in session.prompt("go"):
            shown |= {event.tool_call_id} if isinstance(event, ToolCallUpdate) and event.name == "bash" else set()
            if len(shown) == len(commands):
                user.all_shown.set()
    slow: SlowUser = user
    return slow


async def test_the_user_is_asked_one_thing_at_a_time(tmp_path: Path) -> None:
    user = await asked_by_three(tmp_path, "allow_once", "touch a", "touch b", "touch c")
    assert (user.most, sorted(map(str, user.titles))) == (1, ["0: touch a", "1: touch b", "2: touch c"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


async def test_always_to_one_answers_the_same_question_of_the_others(tmp_path: Path) -> None:
    user = await asked_by_three(tmp_path, "allow_always", *["touch a"] * 3)
    assert len(user.titles) == 1


async def test_no_to_one_answers_the_same_question_of_the_others(tmp_path: Path) -> None:
    user = await asked_by_three(tmp_path, "reject_once", *["touch a"] * 3)
    assert (len(user.titles), list(tmp_path.iterdir())) == (1, [])


async def test_one_is_stopped_and_the_other_goes_on(tmp_path: Path) -> None:
    agents = {"slow": playing(bash("sleep 1000")), "quick": playing(bash("until [ -e go ]; do sleep 0.02; done"))}
    model = RecordingModel([task("slow"), task("quick"), {"say": "."}], agents=agents)
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        slow = ""
        async for event in session.prompt("go"):
            if isinstance(event, ToolCallUpdate) and event.title == "Task slow":
                slow = event.tool_call_id
            if isinstance(event, ToolCallUpdate) and event.title == "slow: sleep 1000":
                await session.cancel_tool_call(slow)
                (tmp_path / "go").touch()
    assert model.results == ["The user has stopped this call.", "Report."]


async def test_a_cancelled_turn_ends_all_of_them(tmp_path: Path) -> None:
    agents = {name: playing(bash("sleep 1000")) for name in ("one", "two")}
    model = RecordingModel([task("one"), task("two"), {"say": "."}], [{"say": "."}], agents=agents)
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        turn = session.prompt("go")
        running = 0
        async for event in turn:
            running += isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable)
            if running == 2:
                await turn.cancel()
        await events_of(session)
    assert (turn.stop_reason, len(model.results)) == ("cancelled", 2)
