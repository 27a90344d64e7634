"""A conversation that is too long gets shorter, and loses neither the prompt nor anything by a failed summary."""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder import loop
from dragoman.coder.compaction import COMPACTIONS_A_CALL, ContextBudget
from dragoman.coder.context import (
    Context,
    ContextAssistantMessage,
    ContextSummary,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
    read,
)
from dragoman.coder.models.contract import (
    ModelFailed,
    ModelRequest,
    Piece,
    TextDelta,
    ToolCallRequested,
    ToolSpec,
    UsageReported,
)
from dragoman.coder.models.request_failures import ContextFull
from dragoman.coder.token_estimate import tokens_of
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Image, Text, text_of
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, CompactionUpdate, Idle, Notice
from tests.coder.strict_model import StrictModel
from tests.support.conversation import briefing, conversation
from tests.support.whole_agent import events_of, whole

pytestmark = pytest.mark.anyio

LIMIT = ModelFailed("rate_limit", "The provider asks to slow down")
SAYS = [{"say": "answer " * 100}]


def said(message_id: str, text: str) -> ContextUserMessage:
    return ContextUserMessage(message_id, [Text(text)])


def talk(count: int, length: int = 400) -> list[Item]:
    """So many turns, each with a tool call that was answered."""
    items: list[Item] = []
    for n in range(count):
        call = ContextToolCall(f"c{n}", "read_file", {"path": f"{n}"})
        result = ContextToolResult(call.id, call.tool, "r" * 300)
        items += [
            said(f"m{n}", f"prompt {n}"),
            ContextAssistantMessage("", "", [call]),
            result,
            ContextAssistantMessage("a" * length),
        ]
    return items


class Hands:
    """A tool that says as much as it is told to."""

    def __init__(self, *lengths: int) -> None:
        self._lengths = list(lengths)

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec("read_file", "Read.", {})]

    async def run(self, calls: Sequence[ContextToolCall], finished: loop.Finished) -> None:
        for call in calls:
            await finished(ContextToolResult(call.id, call.tool, "y" * self._lengths.pop(0)))


class Desk:
    """A context with a budget, and the events and notes it has made."""

    def __init__(self, model: StrictModel, items: list[Item]) -> None:
        self.notes: list[object] = []
        self.events: list[AnyEvent] = []
        self.waits_to_try_again = asyncio.Event()
        self.model = model
        self.context = Context(list(items), self._note)
        self.budget = ContextBudget(self.context, self._emit)

    async def _note(self, note: object) -> None:
        self.notes.append(note)

    async def _emit(self, event: AnyEvent) -> None:
        self.events.append(event)
        if isinstance(event, Notice):
            self.waits_to_try_again.set()

    async def turn(self, prompt: ContextUserMessage, tool_runner: Hands | None = None) -> Idle:
        self.model.begin_turn()
        async for event in loop.turn(
            self.model, self.context, tool_runner or Hands(), prompt, budget=self.budget, system="Be brief."
        ):
            self.events.append(event)
        assert isinstance(event, Idle)
        return event

    def stages(self) -> list[str]:
        return [event.status for event in self.events if isinstance(event, CompactionUpdate)]

    def prompts(self) -> list[str]:
        return [text_of(item.content) for item in self.model.asked[-1].items if isinstance(item, ContextUserMessage)]


# -- the provider says that it is too long ---------------------------------------------------------------------------


@pytest.mark.requirement("CA1")
async def test_an_overflow_is_summed_up_and_the_prompts_stay_word_for_word() -> None:
    desk = Desk(StrictModel(SAYS, fits=1500), talk(12))
    assert (await desk.turn(said("new", "the new prompt"))).stop_reason == "end_turn"
    assert desk.stages() == ["in_progress", "completed"]
    assert desk.prompts() == [*(f"prompt {n}" for n in range(12)), "the new prompt"]
    assert isinstance(desk.model.asked[-1].items[-2], ContextSummary)


async def test_earlier_prompts_stay_only_in_their_share_the_newest_first() -> None:
    items: list[Item] = []
    for n in range(6):
        items += [said(f"m{n}", f"{n}" * 1200), ContextAssistantMessage("a" * 2000)]
    desk = Desk(StrictModel(SAYS, fits=3000), items)
    await desk.turn(said("new", "the new prompt"))
    assert [text[:1] for text in desk.prompts()] == ["3", "4", "5", "t"]


async def test_a_request_for_the_summary_that_overflows_is_made_again_with_less() -> None:
    desk = Desk(StrictModel(SAYS, fits=500), talk(20))
    assert (await desk.turn(said("new", "the new prompt"))).stop_reason == "end_turn"
    sizes = [tokens_of(request.items) for request in desk.model.summaries]
    assert len(sizes) > 1 and sizes == sorted(sizes, reverse=True) and sizes[-1] <= 500
    assert desk.prompts()[-1] == "the new prompt"


async def test_a_long_turn_keeps_its_prompt_and_its_last_results() -> None:
    steps = [step for n in range(30) for step in ({"say": f"step {n} " + "s" * 400}, {"call": "read_file"})]
    desk = Desk(StrictModel([*steps, {"say": "done"}], fits=1500), [])
    end = await desk.turn(said("new", "the long task"), Hands(*[200] * 30))
    assert end.stop_reason == "end_turn"
    assert AgentMessageChunk(Text("done")) in desk.events
    assert desk.prompts() == ["the long task"]
    assert 1 < desk.stages().count("completed") < 10
    assert isinstance(desk.model.asked[-1].items[-1], ContextToolResult)


async def test_a_giant_result_is_cut_and_the_turn_goes_on() -> None:
    desk = Desk(StrictModel([{"call": "read_file"}, {"say": "seen"}], fits=2000), [])
    end = await desk.turn(said("new", "read it"), Hands(100_000))
    (result,) = [item for item in desk.context.items if isinstance(item, ContextToolResult)]
    assert end.stop_reason == "end_turn"
    assert "left out here: too long for the model" in result.text and tokens_of([result]) < 1700
    assert desk.stages() == []


class Unloaded(StrictModel):
    """A model whose window is known once its price list is loaded."""

    async def find_window(self) -> None:
        self.window = 30_000


async def test_a_long_conversation_waits_for_the_window_and_counts_with_it() -> None:
    desk = Desk(Unloaded(SAYS, fits=30_000), talk(12, length=10_000))
    assert desk.model.window is None
    assert (await desk.turn(said("new", "the new prompt"))).stop_reason == "end_turn"
    assert [request.purpose for request in desk.model.asked] == ["summary", "turn"]


async def test_a_short_conversation_does_not_wait_for_the_window() -> None:
    desk = Desk(Unloaded(SAYS), talk(12))
    assert (await desk.turn(said("new", "the new prompt"))).stop_reason == "end_turn"
    assert desk.model.window is None


@pytest.mark.parametrize("window", [None, 400_000], ids=["unknown window", "window that the provider does not have"])
async def test_nothing_is_summed_up_for_a_prompt_that_is_nearly_all_there_is(window: int | None) -> None:
    before = talk(3)
    desk = Desk(StrictModel(SAYS, fits=1500), before)
    desk.model.window = window
    end = await desk.turn(said("new", "x" * 200_000))
    assert end.error
    assert end.error.message == (
        "Your message is too long for script: it has about 50,000 tokens. It was left out of the conversation; send a "
        "shorter one, or put the text into a file to be read in parts"
    )
    assert (desk.stages(), desk.context.items, len(desk.model.asked)) == ([], before, 1)


async def test_a_prompt_that_alone_is_too_long_gets_an_error_and_does_not_poison_the_session() -> None:
    before = talk(1)
    desk = Desk(StrictModel(SAYS, fits=1000, window=1000), before)
    end = await desk.turn(said("new", "x" * 40_000))
    assert end.error and end.error.message.startswith("Your message is too long for script: it has about 10,000 tokens")
    assert desk.context.items == before
    assert (await desk.turn(said("next", "shorter"))).stop_reason == "end_turn"


@pytest.mark.parametrize(("step", "length"), [([], 3_000), ([{"say": "z" * 1200}], 300)], ids=["results", "words"])
async def test_a_long_prompt_that_the_model_has_answered_to_stays(step: list[Any], length: int) -> None:
    steps = [*step, {"call": "read_file"}] * 4
    desk = Desk(StrictModel([*steps, {"say": "seen"}], fits=11_000), [])
    end = await desk.turn(said("new", "x" * 40_000), Hands(*[length] * 4))
    assert end.stop_reason == "end_turn"
    assert desk.prompts() == ["x" * 40_000]


# -- no summary ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CA2")
async def test_a_rate_limit_is_waited_for_as_in_every_model_call() -> None:
    desk = Desk(StrictModel(SAYS, fits=1500), talk(12))
    desk.model.summary_failures = [LIMIT, LIMIT]
    assert (await desk.turn(said("new", "the new prompt"))).stop_reason == "end_turn"
    notices = [event.title for event in desk.events if isinstance(event, Notice)]
    assert notices == [f"{LIMIT}; trying again ({n} of 3)" for n in (1, 2)]


async def test_without_a_summary_nothing_changes_and_the_next_prompt_works() -> None:
    before = talk(12)
    desk = Desk(StrictModel(SAYS, fits=1500), before)
    desk.model.summary_failures = [LIMIT] * 4
    end = await desk.turn(said("new", "the new prompt"))
    assert end.error and "could not be summed up: The provider asks to slow down" in end.error.message
    assert end.error.data == {"reason": "rate_limit"}
    assert desk.context.items == [*before, said("new", "the new prompt")]
    assert desk.stages() == ["in_progress", "failed"]
    assert (await desk.turn(said("next", "again"))).stop_reason == "end_turn"
    assert desk.prompts()[-2:] == ["the new prompt", "again"]


async def test_a_wait_that_is_too_long_is_not_waited_for() -> None:
    desk = Desk(StrictModel(SAYS, fits=1500), talk(12))
    desk.model.summary_failures = [ModelFailed("rate_limit", "No credit", math.inf)]
    end = await desk.turn(said("new", "the new prompt"))
    assert end.error and "No credit" in end.error.message


@pytest.mark.requirement("CA1")
async def test_a_summary_that_cannot_be_had_leaves_out_the_oldest_and_the_turn_goes_on() -> None:
    desk = Desk(StrictModel(SAYS, fits=1500), talk(12))
    desk.model.summary_failures = [ModelFailed("garbage", "The model gave no summary")] * 4
    assert (await desk.turn(said("new", "the new prompt"))).stop_reason == "end_turn"
    assert desk.prompts() == [*(f"prompt {n}" for n in range(12)), "the new prompt"]
    (summary,) = [item for item in desk.context.items if isinstance(item, ContextSummary)]
    assert summary.text.startswith("[The beginning of the conversation was left out here")
    titles = [event.title for event in desk.events if isinstance(event, Notice)]
    sentence = (
        r"no summary could be had: The model gave no summary\. .* the oldest part any more, about [1-9][0-9,]+ tokens"
    )
    assert re.search(sentence, titles[-1]), titles


async def test_the_plan_stays_beside_a_summary() -> None:
    steps = [{"content": "Find it", "status": "completed"}, {"content": "Fix it", "status": "in_progress"}]
    call = ContextToolCall("p", "update_plan", {"entries": steps})
    plan: list[Item] = [ContextAssistantMessage("", "", [call]), ContextToolResult("p", "update_plan", "ok")]
    desk = Desk(StrictModel(SAYS, fits=1500), [said("m", "go"), *plan, *talk(12)])
    await desk.turn(said("new", "the new prompt"))
    shown = briefing(desk.context.items)
    assert shown == {"plan": "The plan as it stood:\n- [completed] Find it\n- [in_progress] Fix it"}
    await desk.budget.compact(desk.model)
    assert briefing(desk.context.items) == shown
    assert desk.stages().count("completed") == 2


async def test_a_plan_right_before_the_prompt_stays_as_well() -> None:
    call = ContextToolCall("p", "update_plan", {"entries": [{"content": "Find it"}]})
    plan: list[Item] = [ContextAssistantMessage("", "", [call]), ContextToolResult("p", "update_plan", "ok")]
    desk = Desk(StrictModel(SAYS, fits=1500), [*talk(12), *plan])
    await desk.turn(said("new", "the new prompt"))
    assert ("completed" in desk.stages(), briefing(desk.context.items)) == (
        True,
        {"plan": "The plan as it stood:\n- [pending] Find it"},
    )


async def test_of_a_large_window_prompts_keep_20000_tokens_at_most() -> None:
    items: list[Item] = []
    for n in range(60):
        items += [said(f"m{n}", f"{n:04}" * 500), ContextAssistantMessage("a" * 4000)]
    desk = Desk(StrictModel(SAYS, window=400_000), items)
    await desk.budget.compact(desk.model)
    kept = [item for item in desk.context.items if isinstance(item, ContextUserMessage)]
    assert len(kept) == 20_000 // (2000 // 4)


async def test_compact_with_a_focus_asks_for_it() -> None:
    desk = Desk(StrictModel(SAYS), talk(3))
    await desk.budget.compact(desk.model, "the parser")
    asked = desk.model.summaries[-1].items[-1]
    assert isinstance(asked, ContextUserMessage)
    assert text_of(asked.content).endswith("The user wants it to keep above all: the parser")


async def test_turned_off_the_conversation_is_not_summed_up_before_it_is_too_long() -> None:
    desk = Desk(StrictModel(SAYS, window=3000), talk(12, length=600))
    desk.budget = ContextBudget(desk.context, desk._emit, compact_above=0)
    desk.budget.accept(UsageReported(2800, 100))
    await desk.turn(said("new", "the new prompt"))
    assert desk.stages() == []


async def test_a_foreseen_compaction_that_fails_does_not_end_the_turn() -> None:
    before = talk(12, length=600)
    desk = Desk(StrictModel(SAYS, window=3000), before)
    desk.budget.accept(UsageReported(2800, 100))
    desk.model.summary_failures = [LIMIT] * 4
    assert (await desk.turn(said("new", "the new prompt"))).stop_reason == "end_turn"
    assert desk.context.items[:-1] == [*before, said("new", "the new prompt")]
    assert desk.stages() == ["in_progress", "failed"]


async def test_a_model_that_always_overflows_ends_the_turn_after_so_many_compactions() -> None:
    desk = Desk(StrictModel(SAYS), talk(12))
    real = desk.model.respond

    async def respond(request: Any) -> Any:
        if request.purpose == "turn":
            desk.model.asked.append(request)
            raise ContextFull("script")
        async for piece in real(request):
            yield piece

    desk.model.respond = respond  # type: ignore[method-assign]
    end = await desk.turn(said("new", "the new prompt"))
    assert end.stop_reason == "error"
    assert desk.stages().count("in_progress") == COMPACTIONS_A_CALL
    assert [request.purpose for request in desk.model.asked].count("turn") == COMPACTIONS_A_CALL + 1


async def test_a_compaction_that_is_cancelled_changes_nothing() -> None:
    before = talk(12)
    desk = Desk(StrictModel(SAYS, fits=1500), before)
    desk.model.summary_failures = [LIMIT]
    desk.model.retry_seconds = lambda attempt: 50.0  # type: ignore[method-assign]
    turning = asyncio.ensure_future(desk.turn(said("new", "the new prompt")))
    await desk.waits_to_try_again.wait()
    turning.cancel()
    await asyncio.wait([turning])
    assert desk.stages() == ["in_progress", "cancelled"]
    assert desk.context.items == [*before, said("new", "the new prompt")]


# -- how full it is --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CA4")
async def test_what_came_after_the_last_report_counts() -> None:
    desk = Desk(StrictModel(SAYS), talk(1))
    desk.budget.accept(UsageReported(10_000, 0))
    await desk.context.add(said("m", "x" * 400_000))
    assert desk.budget.tokens() == 110_000


@pytest.mark.requirement("CA4")
async def test_images_the_system_prompt_and_the_tools_count_without_a_report() -> None:
    desk = Desk(StrictModel(SAYS), [ContextUserMessage("m", [Image("aGk=", "image/png")])])
    assert desk.budget.tokens() == 1500
    desk.budget.set_setting("s" * 4000, [ToolSpec("t", "d" * 3000, {"x": "y" * 1000})], None)
    assert desk.budget.tokens() > 3400


# -- the log, and what the user is told ------------------------------------------------------------------------------


async def test_a_compaction_is_read_from_the_log_as_it_was(tmp_path: Path) -> None:
    model = StrictModel(*[[{"say": "a" * 2000}]] * 8, fits=2500)
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, model.make, store=store) as (_, session):
        for n in range(8):
            await events_of(session, f"prompt {n}")
        logged = conversation(read([record.entry async for records in store.read(session.id) for record in records]))
        assert model.summaries
        assert logged[:-1] == list(model.asked[-1].items)
        assert [text_of(item.content) for item in logged if isinstance(item, ContextUserMessage)][-1] == "prompt 7"
    await store.close()


def words(events: Sequence[AnyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


async def test_compact_says_how_much_was_summed_up_and_that_nothing_is_left(tmp_path: Path) -> None:
    model = StrictModel([{"say": "a" * 4000}])
    async with whole(tmp_path, model.make) as (_, session):
        assert words(await events_of(session, "/compact")) == "There is nothing to sum up.\n"
        await events_of(session, "go")
        assert words(await events_of(session, "/compact")).startswith(
            "The conversation was summed up: it had about 1,1"
        )
        assert words(await events_of(session, "/compact")) == "There is nothing to sum up.\n"


@pytest.mark.requirement("CA3")
async def test_compact_says_why_it_failed_and_that_nothing_was_changed(tmp_path: Path) -> None:
    model = StrictModel([{"say": "a" * 4000}])
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session, "go")
        model.summary_failures = [LIMIT] * 4
        text = words(await events_of(session, "/compact"))
        await events_of(session, "next")
    expected = f"The conversation could not be summed up: {LIMIT}. Nothing was changed.\n"
    assert text == expected
    assert [type(item) for item in model.asked[-1].items] == [
        ContextUserMessage,
        ContextAssistantMessage,
        ContextUserMessage,
    ]


# -- a response that the overflow cuts off, and a cancel at the end of a summary -------------------------------------


class CutOff(StrictModel):
    """Streams text and a call, and overflows then; the next response is whole."""

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        is_first = request.purpose == "turn" and not self.asked
        if is_first:
            self.asked.append(request)
            yield TextDelta("half of an ")
            yield ToolCallRequested("read_file", {"path": "never"}, "lost")
            raise ContextFull(self.name)
        async for piece in super().respond(request):
            yield piece


async def test_what_an_overflow_has_cut_off_is_neither_run_nor_part_of_the_conversation() -> None:
    desk = Desk(CutOff([{"say": "whole"}]), talk(12))
    end = await desk.turn(said("new", "the new prompt"), Hands())  # a call that runs would find no length
    assert end.stop_reason == "end_turn"
    assert desk.context.items[-2:] == [said("new", "the new prompt"), ContextAssistantMessage("whole")]
    assert desk.context.streamed == []


@pytest.mark.parametrize("step", ["note", "event"])
async def test_a_cancel_between_a_finished_summary_and_its_end_leaves_a_completed_one(
    step: str,
) -> None:
    desk = Desk(StrictModel(SAYS), talk(12))
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def note(note: object) -> None:
        desk.notes.append(note)
        await wait(step == "note")

    async def emit(event: AnyEvent) -> None:
        await wait(step == "event" and isinstance(event, CompactionUpdate) and event.status == "completed")
        desk.events.append(event)

    async def wait(is_here: bool) -> None:
        if is_here:
            reached.set()
            await go_on.wait()

    desk.context = Context(talk(12), note)
    desk.budget = ContextBudget(desk.context, emit)
    compacting = asyncio.ensure_future(desk.budget.compact(desk.model))
    await reached.wait()
    compacting.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await compacting
    assert desk.stages() == ["in_progress", "completed"]
    assert [isinstance(item, ContextSummary) for item in desk.context.items].count(True) == 1
    assert len(desk.notes) == 1
