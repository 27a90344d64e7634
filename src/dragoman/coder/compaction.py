"""Keep the conversation inside the model's window. The log keeps everything; only what the model sees gets shorter.

When it gets tight, seen coming (`make_room`) or because the provider says so (`make_room_after_overflow`), the
remedies are, in this order:

1. Old tool results that the model has answered to become a line each, if that is enough.
2. Results that the model has not seen yet, and that alone take a large part of the window, are cut in their middle, if
   that is enough.
3. A summary takes the place of the older part. What the user said stays word for word: the prompts of the running turn
   always, earlier ones as far as they fit a share of the window, the newest first. The last steps of the turn stay too.
4. Where nothing before the last steps gets shorter and the provider finds them too long, they get shorter as well.

Promise: where a summary fails in passing (a limit, the network), nothing changes: the failure is told, and the next
prompt may try again. Where the provider refuses the conversation as too long and another try would not help, the oldest
items are left out, never a prompt of the running turn, and the user is told. Only an answer that the model has finished
by itself is a summary: not what it refused to say, not what was cut off, not what calls a tool. A request for a summary
that is itself too long is made again with less in it; a summary that is too long is asked for once more, and shorter.
Environment, mode, notes of the project and the plan stay beside a summary as they are.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, Literal, NamedTuple, Protocol

from dragoman.agent.session import new_id
from dragoman.coder.context import (
    NOT_THE_USER,
    Context,
    ContextAssistantMessage,
    ContextSummary,
    ContextUserMessage,
    Item,
    is_prompt,
    newest_of_sources,
    place_of_prompt,
)
from dragoman.coder.model_calls import ModelCalls
from dragoman.coder.models.contract import (
    Model,
    ModelFailed,
    ModelFinished,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    ToolSpec,
    UsageReported,
)
from dragoman.coder.models.request_failures import NEVER, ContextFull, RequestRejected
from dragoman.coder.setup import COMPACT_ABOVE
from dragoman.coder.shortening import (
    answered_results,
    asking_for_summary,
    fits,
    plan_to_keep,
    shorter,
    split_for_summary,
    unseen_results,
    verbatim_prompts,
)
from dragoman.coder.spend_caps import SpendCapReached
from dragoman.coder.token_estimate import BYTES_A_TOKEN, shares_of, tokens_of, tokens_of_setting
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AnyEvent, CompactionSummaryChunk, CompactionUpdate, Notice

# The part of the window that trimming has to reach to be worth it; above `COMPACT_ABOVE` something is done.
COMPACT_TO: Final = 0.6
# After a compaction the next one, where it is only foreseen, waits until so much of the window was added.
GROWTH_SHARE: Final = 0.05
# A prompt with more of all tokens than this is itself too long: summing up the rest would be in vain.
PROMPT_IS_ALL: Final = 0.9
# In one turn, and for one model call: a conversation that is too long after so many does not get shorter by more.
COMPACTIONS_A_TURN: Final = 20
COMPACTIONS_A_CALL: Final = 3
# A request for a summary gets shorter so many times, to a thousandth of what it was.
SUMMARY_TRIES: Final = 12
_WITHOUT_SUMMARY: Final = "[The beginning of the conversation was left out here; no summary of it could be made.]"
PLAN: Final = "plan"
# What a provider has counted is believed from half the estimate up to four times it, and so far apart: tokens of code
# and of other scripts differ from the average by less, and what is smaller does no harm.
_FEWER: Final = (2, 8_000)
_MORE: Final = (4, 20_000)
# A summary of more is no summary.
_SUMMARY_CHARACTERS: Final = 40_000

Emit = Callable[[AnyEvent], Awaitable[None]]


class SummaryWatch(Protocol):
    """Told before a summary is made, and when it stands in the context. `is_asked`: the user wants it."""

    async def __call__(self, stage: Literal["before", "after"], *, is_asked: bool, focus: str) -> None: ...


_log = logging.getLogger(__name__)


class Compaction(NamedTuple):
    """What came of making room. Tokens are those of the conversation alone, roughly."""

    outcome: Literal["enough", "trimmed", "summed", "dropped", "nothing", "failed"]
    before: int = 0
    after: int = 0
    failure: ModelFailed | None = None

    @property
    def is_shorter(self) -> bool:
        """Whether the model sees less now than before."""
        return self.outcome in ("trimmed", "summed", "dropped")


class SummaryTooLong(ModelFailed):
    """The summary has not come to its end: the model may say no more, or it says too much."""

    def __init__(self) -> None:
        super().__init__("server", "The model's summary is too long, and was cut off", NEVER)


class LargestPrompt(NamedTuple):
    """A message of the user, and its length."""

    tokens: int
    message_id: str


def is_believable(reported: int, estimated: int) -> bool:
    """Return whether a provider can have counted so many tokens where the estimate is this."""
    fewest = (estimated - _FEWER[1]) / _FEWER[0]
    return max(fewest, 1) <= reported <= estimated * _MORE[0] + _MORE[1]


class ContextBudget:
    """How full the window is, and what is done about it. One for each context."""

    def __init__(
        self,
        context: Context,
        emit: Emit,
        compact_above: float = COMPACT_ABOVE,
        calls: ModelCalls | None = None,
        watch: SummaryWatch | None = None,
    ) -> None:
        """`compact_above` is a part of the window; 0: only when the provider says that a request is too long.

        `calls` makes the requests for a summary, and counts what they cost. `watch` is told of each summary.
        """
        self._watch = watch
        self._is_asked = False
        self._calls = calls or ModelCalls()
        self._context = context
        self._compact_above = compact_above
        self._focus = ""
        self._emit = emit
        # What the provider counted with the last response, and our estimate of the same items; 0: it has told nothing.
        self._reported = 0
        self._estimated = 0
        self._system = ""
        self._tools: Sequence[ToolSpec] = ()
        self._setting_tokens = 0
        # The estimate right after the last compaction; None: there was none.
        self._compacted_to: int | None = None
        # The prompt of the running turn, and the compactions this turn may still have.
        self._prompt_id: str | None = None
        self._left = COMPACTIONS_A_TURN
        # Compactions since the model has answered last, and whether a foreseen one has failed in this turn.
        self._in_a_row = 0
        self._has_failed = False

    def __repr__(self) -> str:
        return f"<ContextBudget {self.tokens()} tokens, {len(self._context.items)} items>"

    def begin_turn(self, prompt_id: str) -> None:
        """Begin a turn with this prompt, which stays word for word while the turn runs."""
        self._prompt_id = prompt_id
        self._left = COMPACTIONS_A_TURN
        self._in_a_row = 0
        self._has_failed = False

    def set_setting(self, system: str, tools: Sequence[ToolSpec], window: int | None) -> None:
        """Count the system prompt and the tools, which are sent with every request."""
        self._system, self._tools = system, tools
        tokens = tokens_of_setting(system, tools)
        # A window that holds not even these is a figure that nothing can be planned with.
        self._setting_tokens = 0 if window is not None and tokens >= window else tokens

    def accept(self, used: UsageReported | None) -> None:
        """Record that the model has answered, and how many tokens the provider has counted for the items of now.

        A count that is far from the estimate is not believed: servers are known to count what they have left after
        they cut a conversation, or all that was sent in a day. What was reported before it, with the estimate of what
        came since, is nearer.
        """
        self._in_a_row = 0
        estimated = tokens_of(self._context.items)
        if used is not None and is_believable(used.input, estimated + self._setting_tokens):
            self._reported = used.input + used.output
            self._estimated = estimated

    def reset(self) -> None:
        """Forget what the provider has counted: the items are others."""
        self._reported = 0
        self._compacted_to = None

    def tokens(self) -> int:
        """About what the next model call is going to see: the last report, and our estimate of what came since."""
        now = tokens_of(self._context.items)
        if not self._reported:
            return now + self._setting_tokens
        return max(self._reported + now - self._estimated, 1)

    def shares(self) -> dict[str, int]:
        """Return about how many tokens each part of a request has, the system prompt and the tools first."""
        setting = {"instructions and tools": self._setting_tokens} if self._setting_tokens else {}
        return setting | shares_of(self._context.items)

    # -- making room -------------------------------------------------------------------------------------------------

    async def make_room(self, model: Model) -> Compaction:
        """Shorten the context before the next call, if it is nearly full. The call is made even if this fails."""
        window, above = model.window, self._compact_above
        if window is None or not above or self.tokens() <= above * window or not self._is_worth_it(window):
            return Compaction("enough")
        result = await self._shorten(model, window, is_foreseen=True)
        _log.info("context was nearly full: %s, %d to %d tokens", result.outcome, result.before, result.after)
        # Not again in this turn, unless the provider finds it too long indeed.
        self._has_failed = result.outcome == "failed"
        return result

    async def make_room_after_overflow(self, model: Model) -> Compaction:
        """Make the context shorter than it is: the provider says that it is too long, whatever we have counted."""
        window = model.window
        if window is not None and self.is_prompt_too_long(window):
            return Compaction("nothing")
        if not self.has_answered() and self.largest_prompt().tokens > PROMPT_IS_ALL * self.tokens():
            return Compaction("nothing")
        result = await self._shorten(model, min(self.tokens(), window or self.tokens()), is_foreseen=False)
        _log.info("context was too long: %s, %d to %d tokens", result.outcome, result.before, result.after)
        return result

    async def compact(self, model: Model, focus: str = "") -> Compaction:
        """Sum up everything, because the user wants it; `focus` is what the summary should keep above all."""
        self._prompt_id = None
        limit = model.window or max(self.tokens(), 1)
        self._focus, self._is_asked = focus, True
        try:
            return await self._sum_up(model, len(self._context.items), limit)
        finally:
            self._focus, self._is_asked = "", False

    def largest_prompt(self) -> LargestPrompt:
        """Return the longest message of the user in the running turn."""
        items = self._context.items
        prompts = [item for item in items[self._running() :] if is_prompt(item)]
        return max(
            (LargestPrompt(tokens_of([item]), item.message_id) for item in prompts), default=LargestPrompt(0, "")
        )

    def has_answered(self) -> bool:
        """Return whether the model has answered in the running turn: then the prompt is not too long by itself."""
        return any(isinstance(item, ContextAssistantMessage) for item in self._context.items[self._running() :])

    def is_prompt_too_long(self, window: int) -> bool:
        """Return whether the prompt alone is too long: a summary of the rest would not help."""
        return self.largest_prompt().tokens + self._setting_tokens > window

    def _is_worth_it(self, window: int) -> bool:
        """Return whether something could get shorter; the system prompt and the tools cannot."""
        if self._has_failed or self._in_a_row > 0 or self.is_prompt_too_long(window):
            return False
        base = self._compacted_to
        if base is None and self._reported:
            return True
        return tokens_of(self._context.items) - (base or 0) > GROWTH_SHARE * window

    def _running(self) -> int:
        return place_of_prompt(self._context.items, self._prompt_id)

    async def _shorten(self, model: Model, window: int, *, is_foreseen: bool) -> Compaction:
        if self._left <= 0 or self._in_a_row >= COMPACTIONS_A_CALL:
            return Compaction("nothing")
        self._left -= 1
        self._in_a_row += 1
        items, tokens = self._context.items, self.tokens()
        before = tokens_of(items)
        # The provider may count more than we do; the shares of the window are in our own count.
        limit = window * min(1.0, (before + self._setting_tokens) / max(tokens, 1))
        goal = tokens - COMPACT_TO * window
        old, new = answered_results(items), unseen_results(items, limit)
        freed = tokens_of(old)
        freed_by_both = freed + tokens_of(new.results) - len(new.results) * new.keep // BYTES_A_TOKEN
        if freed and freed >= goal:
            await self._context.trim([item.call_id for item in old])
        elif new.results and freed_by_both >= goal:
            await self._context.trim([item.call_id for item in old])
            await self._context.trim([item.call_id for item in new.results], new.keep)
        else:
            return await self._sum_up_and_cut(model, limit, is_foreseen=is_foreseen)
        self._compacted_to = after = tokens_of(self._context.items)
        return Compaction("trimmed", before, after)

    async def _sum_up_and_cut(self, model: Model, limit: float, *, is_foreseen: bool) -> Compaction:
        split = split_for_summary(self._context.items, self._running(), limit)
        before = tokens_of(self._context.items)
        result = await self._sum_up(model, split, limit)
        is_capped = isinstance(result.failure, SpendCapReached)
        if result.failure is not None and _is_final(result.failure) and not is_foreseen and not is_capped:
            result = await self._drop_oldest(split, limit, result)
        if result.outcome == "nothing" and not is_foreseen:
            result = await self._shorten_last_steps(model, limit)
        new = unseen_results(self._context.items, limit)
        if new.results and result.outcome != "failed":
            await self._context.trim([item.call_id for item in new.results], new.keep)
            self._compacted_to = after = tokens_of(self._context.items)
            outcome: Literal["summed", "trimmed"] = "summed" if result.is_shorter else "trimmed"
            return result._replace(outcome=outcome, before=before, after=after)
        return result

    async def _drop_oldest(self, split: int, limit: float, failed: Compaction) -> Compaction:
        """Leave out the items before `split` without a summary, all but the user's own words, and tell the user."""
        items = self._context.items
        ids = [item.message_id for item in verbatim_prompts(items, split, self._running(), limit)]
        before, plan = tokens_of(items), plan_to_keep(items, split)
        await self._context.add(ContextSummary(_WITHOUT_SUMMARY, len(items) - split, ids))
        await self._keep_plan(plan)
        self._reported = 0
        self._compacted_to = after = tokens_of(self._context.items)
        await self._emit(
            Notice(
                "warning",
                f"The conversation is too long for the model, and no summary could be had: {failed.failure}. The model "
                f"does not see the oldest part any more, about {before - after:,} tokens; the session keeps it.",
            )
        )
        return Compaction("dropped", before, after)

    async def _keep_plan(self, plan: str) -> None:
        if plan:
            text = f"{NOT_THE_USER} The plan as it stood:\n{plan}"
            await self._context.add(ContextUserMessage(new_id("told"), [Text(text)], PLAN))

    async def _shorten_last_steps(self, model: Model, limit: float) -> Compaction:
        """Shorten the steps of the turn that would stay beside a summary: nothing before them gets shorter."""
        items = self._context.items
        if old := answered_results(items):
            await self._context.trim([item.call_id for item in old])
            self._compacted_to = after = tokens_of(self._context.items)
            return Compaction("trimmed", tokens_of(items), after)
        result = await self._sum_up(model, split_for_summary(items, self._running(), 0), limit)
        new = unseen_results(items, 0)
        if result.outcome != "nothing" or not new.results:
            return result
        keep = max(sum(len(item.text) for item in new.results) // len(new.results) // 2, new.keep)
        await self._context.trim([item.call_id for item in new.results], keep)
        self._compacted_to = after = tokens_of(self._context.items)
        return Compaction("trimmed", tokens_of(items), after)

    # -- the summary -------------------------------------------------------------------------------------------------

    async def _sum_up(self, model: Model, split: int, limit: float) -> Compaction:
        """Replace the items before `split` by a summary, all but the user's own words."""
        items = self._context.items
        prompts = verbatim_prompts(items, split, self._running(), limit)
        ids = [item.message_id for item in prompts]
        stays = [*prompts, *newest_of_sources(items)]
        if all(isinstance(item, ContextSummary) or item in stays for item in items[:split]):
            return Compaction("nothing")
        before = tokens_of(items)
        await self._tell_watch("before")
        compaction = new_id("compaction")
        await self._emit(CompactionUpdate(compaction, "in_progress"))
        try:
            summary = await self._summary(model, compaction, items[:split])
        except ModelFailed as failure:
            await self._emit(CompactionUpdate(compaction, "failed", error=str(failure)))
            return Compaction("failed", before, before, failure)
        except BaseException:
            await self._emit(CompactionUpdate(compaction, "cancelled"))
            raise
        finishing = asyncio.ensure_future(
            self._replace_by_summary(
                compaction, ContextSummary(summary, len(items) - split, ids), plan_to_keep(items, split)
            )
        )
        try:
            await asyncio.shield(finishing)
        except asyncio.CancelledError:
            # The summary stands in the context from the first step of `finishing` on, so the compaction is no longer
            # to be cancelled: the client would show it as running for ever, or as something that did not happen.
            await finishing
            raise
        await self._tell_watch("after")
        return Compaction("summed", before, tokens_of(self._context.items))

    async def _tell_watch(self, stage: Literal["before", "after"]) -> None:
        if self._watch is not None:
            await self._watch(stage, is_asked=self._is_asked, focus=self._focus)

    async def _replace_by_summary(self, compaction: str, summary: ContextSummary, plan: str) -> None:
        """Put a summary in the place of what it sums up, and report the compaction as completed."""
        # First recorded, then reported: a process that dies in between has not reported too much.
        await self._context.add(summary)
        await self._keep_plan(plan)
        self._reported = 0
        self._compacted_to = tokens_of(self._context.items)
        await self._emit(CompactionUpdate(compaction, "completed", summary=[Text(summary.text)]))

    async def _summary(self, model: Model, compaction: str, items: Sequence[Item]) -> str:
        """Ask for a summary, with less and less in the request while that is too long itself."""
        shown = list(items)
        room = None if model.window is None else model.window - self._setting_tokens
        while not fits(shown, room) and (less := shorter(shown)) is not None:
            shown = less
        is_brief = False
        for attempt in range(SUMMARY_TRIES):
            items = asking_for_summary(shown, is_brief=is_brief, focus=self._focus)
            request = ModelRequest(items, self._tools, self._system, purpose="summary")
            try:
                return await self._ask_for_summary(model, compaction, request)
            except SummaryTooLong:
                if is_brief or attempt == SUMMARY_TRIES - 1:
                    raise
                is_brief = True
            except (ContextFull, RequestRejected):
                less = shorter(shown)
                if less is None or attempt == SUMMARY_TRIES - 1:
                    raise
                shown = less
        raise AssertionError("the last attempt returns or raises")

    async def _ask_for_summary(self, model: Model, compaction: str, request: ModelRequest) -> str:
        """Return the text of one model call, tried again where that helps."""
        retries = self._calls.retries(model)
        while True:
            try:
                return await self._stream_summary(model, compaction, request)
            except ModelFailed as failure:
                pause = retries.after(failure)
                if pause is None:
                    raise retries.given_up(failure) from None
            await self._emit(pause.notice)
            async for notice in retries.wait(pause):
                await self._emit(notice)

    async def _stream_summary(self, model: Model, compaction: str, request: ModelRequest) -> str:
        pieces: list[str] = []
        length = 0
        reason = ""
        has_called = False
        async with aclosing(await self._calls.open(model, request)) as answer:
            async for piece in answer:
                match piece:
                    case TextDelta(text):
                        length += len(text)
                        if length <= _SUMMARY_CHARACTERS:
                            pieces.append(text)
                            await self._emit(CompactionSummaryChunk(compaction, Text(text)))
                    case UsageReported():
                        await self._calls.spending.add(piece)
                    case ToolCallRequested():
                        has_called = True
                    case ModelFinished():
                        reason = piece.reason
                    case _:  # thoughts, and a form that is not handed back
                        pass
        if reason == "max_tokens" or length > _SUMMARY_CHARACTERS:
            raise SummaryTooLong
        if reason == "refusal":
            raise ModelFailed("server", "The model refused to sum up the conversation", NEVER)
        if reason not in ("", "end_turn"):
            raise ModelFailed("server", f"The model ended its summary early ({reason})")
        if has_called:
            raise ModelFailed("garbage", "The model called a tool instead of summing up")
        summary = "".join(pieces)
        if not summary.strip():
            raise ModelFailed("garbage", "The model gave no summary")
        return summary


def _is_final(failure: ModelFailed) -> bool:
    """Return whether another try would fail in the same way. A limit, a login or a server that is down may pass."""
    return failure.kind == "garbage" or (failure.kind == "server" and failure.retry_seconds == NEVER)
