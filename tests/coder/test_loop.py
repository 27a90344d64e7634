"""The turn of the coding agent: a scripted model in, a list of events out."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import Agent
from dragoman.coder import loop
from dragoman.coder.agent import coding_agent
from dragoman.coder.context import (
    Context,
    ContextAssistantMessage,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
)
from dragoman.coder.models.contract import ModelRequest, Piece, ToolSpec
from dragoman.coder.models.script import Script, ScriptModel, parse
from dragoman.coder.setup import Setup
from dragoman.errors import RequestFailed
from dragoman.testing import pair
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
    Failure,
    Idle,
    Notice,
    Usage,
    UsageChanged,
)
from tests.support.waiting import settled, until
from tests.support.whole_agent import Fixed

pytestmark = pytest.mark.anyio


def model_of(*steps: dict[str, Any]) -> ScriptModel:
    model = ScriptModel(parse({"turns": [{"steps": list(steps)}]}))
    model.begin_turn()
    return model


class Hands:
    """Tools that do nothing, and say so."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec("fly", "Fly.", {})]

    async def run(self, calls: Sequence[ContextToolCall], finished: loop.Finished) -> None:
        self.ran.append([call.tool for call in calls])
        for call in calls:
            await finished(ContextToolResult(call.id, call.tool, f"{call.tool} ran"))


async def noted(note: object) -> None:
    """Kept nowhere."""


HI = ContextUserMessage("m1", [Text("hi")])


async def turn(
    *steps: dict[str, Any], tool_runner: Hands | None = None, items: list[Item] | None = None
) -> list[AnyEvent]:
    context = Context(items if items is not None else [], noted)
    events = [event async for event in loop.turn(model_of(*steps), context, tool_runner or Hands(), HI)]
    if items is not None:
        items[:] = context.items
    return events


def scripted_agent(script: Script) -> Agent:
    return coding_agent(Setup(Fixed(lambda name: ScriptModel(script)), {}))


def said(text: str) -> AgentMessageChunk:
    return AgentMessageChunk(Text(text))


def retried(why: str, attempt: int, *, after_text: bool = False) -> Notice:
    """The notice of a new try; `after_text`: of an answer that had begun."""
    sentence = f"{why}; trying again ({attempt} of 3)"
    return Notice("warning", sentence, meta={"dragoman/brokenOff": True}) if after_text else Notice("warning", sentence)


def failed(code: int, message: str, reason: str) -> Idle:
    return Idle(stop_reason="error", error=Failure(code, message, {"reason": reason}))


async def test_what_the_model_says_and_thinks_is_told_and_the_end_comes_last() -> None:
    assert await turn({"think": "Hm."}, {"say": "tick ", "repeat": 2}) == [
        AgentThoughtChunk(Text("Hm.")),
        said("tick "),
        said("tick "),
        Idle(stop_reason="end_turn"),
    ]


async def test_an_empty_turn_is_an_end() -> None:
    assert await turn() == [Idle(stop_reason="end_turn")]


@pytest.mark.parametrize("end", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
async def test_a_stop_is_the_end_and_nothing_is_played_after_it(end: str) -> None:
    assert await turn({"say": "a"}, {"stop": end}, {"say": "never"}) == [said("a"), Idle(stop_reason=end)]


async def test_a_model_that_stops_in_an_error_ends_the_turn_in_one() -> None:
    assert await turn({"stop": "error"}) == [failed(-32603, "The model ended in an error", "server")]


async def test_the_tokens_of_all_model_calls_are_summed() -> None:
    events = await turn(
        {"usage": {"input": 1, "output": 2}}, {"call": "x"}, {"usage": {"input": 10, "output": 20}}, {"stop": "refusal"}
    )
    assert events[-1] == Idle(stop_reason="refusal", usage=Usage(33, 11, 22))


async def test_the_tokens_of_a_turn_that_failed_are_told_too() -> None:
    (end,) = await turn({"usage": {"input": 1, "output": 2}}, {"fail": "auth"})
    assert isinstance(end, Idle) and end.usage == Usage(3, 1, 2)


PASSING = {
    "rate_limit": "The model's rate limit is reached",
    "network": "The model cannot be reached",
    "server": "The model's server failed",
    "garbage": "The model's answer cannot be read",
}


@pytest.mark.parametrize(("kind", "why"), PASSING.items())
async def test_a_failure_that_passes_is_tried_again_and_seen(kind: str, why: str) -> None:
    assert await turn({"say": "a"}, {"fail": kind, "times": 3}, {"say": "b"}) == [
        said("a"),
        retried(why, 1, after_text=True),
        *[retried(why, attempt) for attempt in (2, 3)],
        said("b"),
        Idle(stop_reason="end_turn"),
    ]


@pytest.mark.parametrize(("kind", "why"), PASSING.items())
async def test_a_failure_that_does_not_pass_ends_the_turn_after_three_more_tries(kind: str, why: str) -> None:
    assert await turn({"say": "a"}, {"fail": kind}) == [
        said("a"),
        retried(why, 1, after_text=True),
        *[retried(why, attempt) for attempt in (2, 3)],
        failed(-32603, why, kind),
    ]


@pytest.mark.parametrize(("seconds", "named"), [(25.0, " in 25 s"), (1.2, " in 2 s"), (0.4, "")])
async def test_a_wait_that_is_felt_is_named_before_it_begins(seconds: float, named: str) -> None:
    model = model_of({"fail": "rate_limit"})
    model.retry_seconds = lambda attempt: seconds  # type: ignore[method-assign]
    async with aclosing(loop.turn(model, Context([], noted), Hands(), HI)) as events:
        why = PASSING["rate_limit"]
        assert await anext(events) == Notice("warning", f"{why}; trying again{named} (1 of 3)")


async def test_a_login_that_is_missing_is_not_tried_again() -> None:
    assert await turn({"say": "a"}, {"fail": "auth"}, {"say": "never"}) == [
        said("a"),
        failed(-32000, "The model wants a login", "auth"),
    ]


async def test_calls_that_stand_together_are_one_response_and_their_results_reach_the_model() -> None:
    tool_runner, items = Hands(), list[Item]()
    events = await turn(
        {"say": "a"},
        {"call": "fly"},
        {"call": "swim"},
        {"say": "b"},
        {"call": "fly"},
        tool_runner=tool_runner,
        items=items,
    )
    assert tool_runner.ran == [["fly", "swim"], ["fly"]]
    assert events == [said("a"), said("b"), Idle(stop_reason="end_turn")]
    match items:
        case [
            ContextUserMessage(),
            ContextAssistantMessage(text="a", calls=[ContextToolCall(one, "fly"), ContextToolCall(two, "swim")]),
            ContextToolResult(call_id=first, text="fly ran"),
            ContextToolResult(call_id=second, text="swim ran"),
            ContextAssistantMessage(text="b", calls=[ContextToolCall(three, "fly")]),
            ContextToolResult(call_id=third),
        ]:
            assert (first, second, third) == (one, two, three)
            assert len({one, two, three}) == 3
        case _:
            pytest.fail(f"{items}")


@pytest.mark.parametrize("kind", ["say", "think"])
async def test_a_model_that_never_ends_is_cut_and_its_calls_are_not_run(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "RESPONSE_CHARACTERS", 10)
    tool_runner = Hands()
    items: list[Item] = []
    events = await turn({kind: "1234", "repeat": 1_000_000}, {"call": "fly"}, tool_runner=tool_runner, items=items)
    cut = Notice("warning", "The model sent more than 10 characters; the rest was cut")
    assert events[2:] == [cut, Idle(stop_reason="max_tokens")]
    assert tool_runner.ran == []
    assert isinstance(items[-1], ContextAssistantMessage)


async def test_a_refused_message_is_not_shown_to_the_model_again() -> None:
    before: list[Item] = [ContextUserMessage("m0", [Text("before")]), ContextAssistantMessage("yes")]
    items = list(before)
    await turn({"say": "a"}, {"call": "fly"}, {"say": "no"}, {"stop": "refusal"}, items=items)
    assert items == before


async def test_a_turn_has_so_many_model_calls_and_no_more() -> None:
    model, tool_runner = model_of(*[{"call": "fly"}, {"say": "on"}] * 10), Hands()
    events = [e async for e in loop.turn(model, Context([], noted), tool_runner, HI, model_calls=3)]
    assert events[-1] == Idle(stop_reason="max_turn_requests")
    assert len(tool_runner.ran) == 3


async def test_a_call_before_a_failure_is_not_run_twice() -> None:
    tool_runner = Hands()
    await turn({"call": "fly"}, {"fail": "network", "times": 1}, {"say": "b"}, tool_runner=tool_runner)
    assert tool_runner.ran == [["fly"]]


async def test_the_context_window_is_told_where_it_is_known() -> None:
    script = parse({"window": 1000, "turns": [{"steps": [{"usage": {"input": 10, "output": 5}}]}]})
    model = ScriptModel(script)
    model.begin_turn()
    events = [e async for e in loop.turn(model, Context([], noted), Hands(), HI)]
    assert events == [UsageChanged(15, 1000), Idle(stop_reason="end_turn", usage=Usage(15, 10, 5))]


# -- cancelling: the generator is closed, wherever it is -----------------------------------------------------------


class Watched(ScriptModel):
    """A model that tells whether its calls were ended."""

    open_calls = 0

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.open_calls += 1
        try:
            async for piece in super().respond(request):
                yield piece
        finally:
            self.open_calls -= 1


ENDLESS = [{"say": "x", "repeat": 1_000_000}]
PHASES = {
    "before the first piece": [{"say": "never", "delay_ms": 60_000}],
    "between two pieces": ENDLESS,
    "while it thinks": [{"think": "x"}, {"think": "x", "delay_ms": 60_000}],
    "after a tool call": [{"call": "x"}, {"say": "never", "delay_ms": 60_000}],
    "while it waits to try again": [{"fail": "network"}],
}


@pytest.mark.parametrize("steps", PHASES.values(), ids=PHASES)
async def test_closing_the_turn_ends_the_model_call(steps: list[dict[str, Any]]) -> None:
    model = Watched(parse({"turns": [{"steps": steps}]}))
    model.begin_turn()
    model.retry_seconds = lambda attempt: 60.0  # type: ignore[method-assign]
    events: list[AnyEvent] = []

    async def follow() -> None:
        async with aclosing(loop.turn(model, Context([], noted), Hands(), HI)) as told:
            async for event in told:
                events.append(event)
                await asyncio.sleep(0)

    following = asyncio.ensure_future(follow())
    await (until(lambda: len(events) > 5) if steps is ENDLESS else settled())
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    assert model.open_calls == 0
    assert not any(isinstance(event, Idle) for event in events)


# -- the whole agent, in memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [1, 2])
async def test_each_session_plays_the_script_from_its_first_turn(protocol: int) -> None:
    script = parse({"turns": [{"steps": [{"say": "one"}]}, {"steps": [{"say": "two"}]}]})
    async with pair(scripted_agent(script), protocol=protocol) as client:
        first, second = await client.new_session("/"), await client.new_session("/")
        answers = [(await session.ask("hi")).text for session in (first, second, first, second, first)]
    assert answers == ["one", "one", "two", "two", "two"]


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_session_is_usable_after_a_turn_that_failed(protocol: int) -> None:
    script = parse({"turns": [{"steps": [{"fail": "auth"}]}, {"steps": [{"say": "Back."}]}]})
    async with pair(scripted_agent(script), protocol=protocol) as client:
        session = await client.new_session("/")
        with pytest.raises(RequestFailed) as failure:
            await session.ask("hi")
        assert (failure.value.code, failure.value.data) == (-32000, {"reason": "auth"})
        assert (await session.ask("hi")).text == "Back."


@pytest.mark.parametrize("protocol", [1, 2])
async def test_the_usage_of_one_turn_is_not_told_for_the_next(protocol: int) -> None:
    turns = [[{"usage": {"input": 1, "output": 2}}], [{"say": "wait"}, {"say": "never", "delay_ms": 60_000}]]
    script = parse({"turns": [{"steps": steps} for steps in turns]})
    async with pair(scripted_agent(script), protocol=protocol) as client:
        session = await client.new_session("/")
        assert (await session.ask("hi")).usage == Usage(3, 1, 2)
        turn = session.prompt("hi")
        async for event in turn:
            if isinstance(event, AgentMessageChunk):
                await turn.cancel()
        assert (turn.stop_reason, turn.usage) == ("cancelled", None)


async def test_a_queued_prompt_that_is_accepted_is_in_the_context_although_the_turn_is_cancelled() -> None:
    """The user was told that it stands in the conversation, so the next turn must know it."""
    accepting, accepted = asyncio.Event(), asyncio.Event()
    more = [ContextUserMessage("m2", [Text("more")]), ContextUserMessage("m3", [Text("and more")])]

    async def queued() -> list[ContextUserMessage]:
        accepting.set()
        await accepted.wait()
        return more

    context = Context([], noted)

    async def run() -> None:
        async for _ in loop.turn(model_of({"say": "hi"}), context, Hands(), HI, queued_prompts=queued):
            pass

    running = asyncio.ensure_future(run())
    await accepting.wait()
    running.cancel()
    await settled()
    accepted.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert context.items == [HI, *more]
