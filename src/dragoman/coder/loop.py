"""The turn of the coding agent: model calls in, events out. An async generator, so cancelling is closing it.

Promise: the last event is the turn's end, and there is one: a model that fails is an end too, never an exception. And
wherever the turn stops (an end, a cancel, a crash of a tool), the context it leaves is whole: text that was streamed is
in it, every call has a result, and the next prompt can go on with it.
"""

import json
from asyncio import CancelledError, ensure_future, shield, wait
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final, Protocol, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agent.session import new_id
from dragoman.coder.compaction import Compaction, ContextBudget
from dragoman.coder.context import (
    Context,
    ContextAssistantMessage,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
)
from dragoman.coder.fallbacks import Fallback, TurnFallbacks, broken_off
from dragoman.coder.model_calls import ModelCalls, old_media
from dragoman.coder.models.contract import (
    FindsWindow,
    Model,
    ModelFailed,
    ModelFinished,
    ModelRequest,
    RawResponse,
    SearchReport,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    ToolSpec,
    UsageReported,
)
from dragoman.coder.models.request_failures import ContextFull
from dragoman.coder.rejection import leave_out_rejected
from dragoman.coder.setup import MODEL_CALLS
from dragoman.coder.spend_caps import SpendCapReached
from dragoman.coder.spending import sum_used
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR
from dragoman.host.media import ALL_MEDIA_BYTES, MEDIA_COUNT
from dragoman.limits import MIB
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    COST,
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
    Cost,
    Failure,
    Idle,
    Notice,
    Usage,
    UsageChanged,
)

# Characters of one response, thoughts among them. Models end after a hundredth of it; a server may never end.
RESPONSE_CHARACTERS: Final = 16 * 1024 * 1024
# Tokens that fit into every window: for no more, a request does not wait until the window is known.
SHORT_CONVERSATION: Final = 16_000

Finished = Callable[[ContextToolResult], Awaitable[None]]


class ToolRunner(Protocol):
    """What runs the calls of a model."""

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now."""

    async def run(self, calls: Sequence[ContextToolCall], finished: Finished) -> None:
        """Run the calls of one response; `finished` is given the result of each as soon as there is one."""


class TurnEnd(Protocol):
    """What may stop a turn before its end, or have it go on behind that."""

    @property
    def stopped(self) -> str:
        """Why nothing more is to be done, in words for the user; empty: go on."""

    async def goes_on(self, said: str) -> bool:
        """Return whether the model, which has ended with these words, is to go on; it is told why by the briefing."""


def turn(
    model: Model,
    context: Context,
    tool_runner: ToolRunner,
    prompt: ContextUserMessage,
    *,
    system: str = "",
    thought_level: str = "",
    model_calls: int = MODEL_CALLS,
    budget: ContextBudget | None = None,
    calls: ModelCalls | None = None,
    fallbacks: TurnFallbacks | None = None,
    queued_prompts: Callable[[], Awaitable[Sequence[ContextUserMessage]]] | None = None,
    briefing: Callable[[bool], Awaitable[Sequence[ContextUserMessage]]] | None = None,
    turn_end: TurnEnd | None = None,
) -> AsyncGenerator[AnyEvent, None]:
    """Yield everything that happens in one turn; the last event is its end.

    `budget` keeps the conversation inside the model's window; without one it is not made shorter. `calls` are the
    session's, to which the cost of this turn is added; `fallbacks` has the models that may answer in the place of
    `model`. `briefing` returns what the model has to be told before the next request; it is called with True before the
    prompt, and with False before every request after the first. `turn_end` is asked whether the turn may end.
    """
    it = _Turn(model, context, tool_runner, prompt, system, thought_level)
    it.model_calls = model_calls
    it.budget = budget
    it.calls = calls or ModelCalls()
    it.fallbacks = fallbacks
    it.queued_prompts = queued_prompts
    it.briefing = briefing
    it.turn_end = turn_end
    return it.run()


class _Turn:
    """A turn and where it stands."""

    model_calls = MODEL_CALLS
    budget: ContextBudget | None = None
    fallbacks: TurnFallbacks | None = None
    queued_prompts: Callable[[], Awaitable[Sequence[ContextUserMessage]]] | None = None
    briefing: Callable[[bool], Awaitable[Sequence[ContextUserMessage]]] | None = None
    turn_end: TurnEnd | None = None

    def __init__(
        self,
        model: Model,
        context: Context,
        tool_runner: ToolRunner,
        prompt: ContextUserMessage,
        system: str,
        thought_level: str,
    ) -> None:
        self.calls = ModelCalls()
        self._model = model
        self._context = context
        self._tool_runner = tool_runner
        self._prompt = prompt
        self._system = system
        self._thought_level = thought_level
        # What the session's model calls had used when the turn began.
        self._used_before: UsageReported | None = None
        # Whether the model has answered to a request of this turn: then its prompt is accepted, and work may be done.
        self._has_answered = False
        # Images that no request has room for, as far as the user was told.
        self._unseen_media = 0

    async def run(self) -> AsyncGenerator[AnyEvent, None]:
        context = self._context
        self._used_before = self.calls.spending.used
        self._unseen_media = sum(old_media(context.items).values())
        await context.settle()  # a turn that ignored its cancel may have left something open
        await self._brief(is_new_turn=True)
        await context.add(self._prompt)
        if self.budget is not None:
            self.budget.begin_turn(self._prompt.message_id)
        try:
            if notice := await self._begin_with():
                yield notice
            for call in range(self.model_calls):
                if call:
                    await self._brief(is_new_turn=False)
                await self._add_queued_prompts()
                request = await self._next_request()
                if notice := self._media_notice():
                    yield notice
                response = _Response(context.streamed)
                has_fallback = self.fallbacks is not None and self.fallbacks.is_there(self._model, self._tokens())
                async with aclosing(_stream(self._model, request, response, self.calls, has_fallback)) as events:
                    async for event in events:
                        yield event
                await self._add_response(response)
                if usage := self._usage_now(response):
                    yield usage
                if notice := await self._fall_back(response):
                    yield notice
                    continue
                if isinstance(response.failure, SpendCapReached):
                    await context.settle()
                    yield Notice("error", str(response.failure))
                    yield Idle(stop_reason="max_turn_requests", usage=self._usage())
                    return
                end = await self._end(response) if response.failure is None else await self._failed(response.failure)
                if end is not None:
                    yield end
                    return
                if response.failure is not None:
                    # Too long, and shorter now: the same call is made again. What this try has streamed is no answer
                    # to anything that the model sees from here on, and its calls belong to no response.
                    context.streamed = []
                    continue
                await self._tool_runner.run(response.calls, context.add)
                if self.turn_end is not None and self.turn_end.stopped:
                    yield Notice("warning", self.turn_end.stopped)
                    yield Idle(stop_reason="end_turn", usage=self._usage())
                    return
            yield Idle(stop_reason="max_turn_requests", usage=self._usage())
        except BaseException:
            # Cancelled, closed, or a tool has crashed. The next turn finds a context that every provider accepts.
            await context.settle()
            raise

    async def _begin_with(self) -> Notice | None:
        """Begin with another model where the chosen one is to be left alone still, and say so."""
        if self.fallbacks is None:
            return None
        return self._answer_with(await self.fallbacks.first(self._model, self._context.items, self._tokens()))

    async def _fall_back(self, response: "_Response") -> Notice | None:
        """Go on with another model after a failure that it may not have; None: there is none, or no such failure.

        What was streamed stays in the context until the other model says something.
        """
        if response.failure is None or self.fallbacks is None:
            return None
        failure, is_broken_off = response.failure, bool(response.text)
        return self._answer_with(
            await self.fallbacks.after(
                self._model, failure, self._context.items, self._tokens(), is_broken_off=is_broken_off
            )
        )

    def _answer_with(self, fallback: Fallback | None) -> Notice | None:
        if fallback is None:
            return None
        self._model, self._system, self._thought_level = fallback.answering
        return fallback.notice

    def _tokens(self) -> int:
        return 0 if self.budget is None else self.budget.tokens()

    def _usage_now(self, response: "_Response") -> UsageChanged | None:
        """Return how full the window is after a response, and the cost so far; None where that is not known.

        Where the provider has counted nothing that can be believed, it is about so full.
        """
        reported, window = response.reported, self._model.window
        if window is None or (reported is None and response.failure is not None):
            return None
        if self.budget is not None:
            tokens = self.budget.tokens()
        elif reported is not None and reported.input:
            tokens = reported.input + reported.output
        else:
            return None
        return UsageChanged(tokens, window, self.calls.spending.cost())

    async def _brief(self, *, is_new_turn: bool) -> None:
        """Add to the context what the model has to be told of the session before its next request."""
        for item in await self.briefing(is_new_turn) if self.briefing is not None else ():
            await self._context.add(item)

    async def _add_queued_prompts(self) -> bool:
        """Accept what the user has sent meanwhile and add it to the context; whether there was something.

        Once begun this goes on to its end, also when the turn is cancelled: the client is told that a prompt is
        accepted before the context has it, and the next turn must know everything that was accepted.
        """
        work = ensure_future(self._accept_queued_prompts())
        try:
            return await shield(work)
        except CancelledError:
            await wait([work])
            if not work.cancelled():
                work.exception()  # retrieved: the turn ends as cancelled whatever became of it
            raise

    async def _accept_queued_prompts(self) -> bool:
        prompts = await self.queued_prompts() if self.queued_prompts is not None else ()
        for prompt in prompts:
            await self._context.add(prompt)
        return bool(prompts)

    async def _next_request(self) -> ModelRequest:
        """Return the next request, after a compaction where that is needed."""
        tools = self._tool_runner.specs()
        if self.budget is not None:
            self.budget.set_setting(self._system, tools, self._model.window)
            is_long = self._model.window is None and self.budget.tokens() > SHORT_CONVERSATION
            if is_long and isinstance(self._model, FindsWindow):
                # What fails here fails in the call as well, which says so.
                with suppress(ModelFailed):
                    await self._model.find_window()
                self.budget.set_setting(self._system, tools, self._model.window)
            await self.budget.make_room(self._model)
        return ModelRequest(self._context.items, tools, self._system, self._thought_level)

    def _media_notice(self) -> Notice | None:
        """Tell the user that the model does not see old images any more, when there are more of them."""
        count, before = sum(old_media(self._context.items).values()), self._unseen_media
        self._unseen_media = max(count, before)
        if count <= before or "image" not in self._model.sees:
            return None
        oldest = f"{count} oldest images" if count > 1 else "oldest image"
        title = (
            f"The model does not see the {oldest} of this conversation any more: a request holds {MEDIA_COUNT} of "
            f"them, and {ALL_MEDIA_BYTES // MIB} MiB in all. The session keeps them."
        )
        return Notice("warning", title)

    async def _add_response(self, response: "_Response") -> None:
        """Add a response to the context, whole or as far as it came."""
        if response.failure is not None:
            pass  # `_failed` looks at the items first: what was streamed of this response is no answer to them
        elif response.reason == "refusal":
            # The model will not hear of it again, or it would refuse everything that follows.
            await self._context.forget(self._prompt.message_id)
        else:
            self._context.accepted_by = self._model.name
            self._has_answered = True
            if not response.is_empty():
                await self._context.add(response.message())
        if self.budget is not None and not isinstance(response.failure, ContextFull):
            self.budget.accept(response.reported)

    async def _end(self, response: "_Response") -> Idle | None:
        """Return the end of the turn, if this response is its last."""
        if response.reason == "error":
            return self._error(ModelFailed("server", "The model ended in an error"))
        if response.reason:
            return Idle(stop_reason=response.reason, usage=self._usage())
        if response.calls or await self._add_queued_prompts():
            return None
        if self.turn_end is not None and await self.turn_end.goes_on("".join(response.text)):
            return None
        return Idle(stop_reason="end_turn", usage=self._usage())

    async def _failed(self, failure: ModelFailed) -> Idle | None:
        """Return the end of a turn whose model call failed; None: call again, with a shorter conversation."""
        left_out = await leave_out_rejected(
            self._context, self._prompt, self._model.name, failure, is_first_call=not self._has_answered
        )
        if left_out:
            failure = ModelFailed(failure.kind, f"{failure}. {left_out}", failure.retry_seconds)
        elif isinstance(failure, ContextFull) and self.budget is not None:
            compaction = await self.budget.make_room_after_overflow(self._model)
            if compaction.is_shorter or isinstance(compaction.failure, SpendCapReached):
                return None  # the call is made again; where no more may be spent, that ends the turn
            failure = await self._too_long(failure, compaction)
        await self._context.settle()
        return self._error(failure)

    async def _too_long(self, failure: ContextFull, compaction: Compaction) -> ModelFailed:
        """Say why a conversation that is too long did not get shorter. A prompt that alone is too long is left out."""
        if compaction.failure is not None:
            why = compaction.failure
            sentence = (
                f"{failure}, and it could not be summed up: {why}. Nothing was lost; prompt again to try it again"
            )
            return ModelFailed(why.kind, sentence, why.retry_seconds)
        assert self.budget is not None
        largest = self.budget.largest_prompt()
        if largest.tokens * 2 < self.budget.tokens() or self._has_answered:
            ways_out = "/clear lets the model forget it, /model chooses another model"
            return ModelFailed(
                failure.kind, f"{failure}, and it does not get shorter: {ways_out}", failure.retry_seconds
            )
        # The provider may count more than we do, or see less than is known of it: then the number would mislead.
        known = self._model.window
        window = f", and it can see {known:,}" if known and self.budget.is_prompt_too_long(known) else ""
        await self._context.forget(largest.message_id)
        return ModelFailed(
            "server",
            f"Your message is too long for {self._model.name}: it has about {largest.tokens:,} tokens{window}. It was "
            "left out of the conversation; send a shorter one, or put the text into a file to be read in parts",
        )

    def _usage(self) -> Usage | UnsetType:
        """Return the tokens of all model calls of the turn; UNSET where the model reported none."""
        used = self.calls.spending.used_since(self._used_before)
        if used is None or not used.input + used.output:
            return UNSET
        cost = self.calls.spending.cost() if self._model.window is None else UNSET
        return Usage(
            used.input + used.output,
            used.input,
            used.output,
            cached_read_tokens=used.cache_read or UNSET,
            cached_write_tokens=used.cache_write or UNSET,
            meta={COST: {"amount": cost.amount, "currency": cost.currency}} if isinstance(cost, Cost) else UNSET,
        )

    def _error(self, failure: ModelFailed) -> Idle:
        code = AUTH_REQUIRED if failure.kind == "auth" else INTERNAL_ERROR
        error = Failure(code, str(failure), {"reason": failure.kind})
        return Idle(stop_reason="error", error=error, usage=self._usage())


class _Response:
    """The response of one model call so far. `text` is the context's list, so streamed text is never lost."""

    def __init__(self, text: list[str]) -> None:
        self.text = text
        self.thought: list[str] = []
        self.calls: list[ContextToolCall] = []
        # Of the last try alone: only that one has seen the conversation as it is.
        self.reported: UsageReported | None = None
        self.raw: object = None
        self.reason = ""
        self.failure: ModelFailed | None = None

    def is_empty(self) -> bool:
        return not (self.text or self.thought or self.calls)

    def message(self) -> ContextAssistantMessage:
        return ContextAssistantMessage("".join(self.text), "".join(self.thought), self.calls, self.raw)

    def add(self, piece: ToolCallRequested | UsageReported | RawResponse | SearchReport | ModelFinished) -> None:
        """Add a piece that is neither text nor thought."""
        match piece:
            case ToolCallRequested():
                self.calls.append(ContextToolCall(piece.id or new_id("call"), piece.tool, _writable(piece.input)))
            case UsageReported():
                self.reported = sum_used(self.reported, piece)
            case RawResponse():
                self.raw = piece.raw
            case ModelFinished():
                self.reason = piece.reason
            case SearchReport():
                pass  # of a request to search the web, and a turn makes none
            case _:
                assert_never(piece)

    def begin_again(self) -> None:
        """Drop what a failed try has left, but for its text. Its calls are not run: the next try makes its own."""
        self.calls.clear()
        self.thought.clear()
        self.reported = self.raw = None


async def _stream(
    model: Model, request: ModelRequest, response: _Response, calls: ModelCalls, has_fallback: bool
) -> AsyncGenerator[AnyEvent, None]:
    """Stream one response, tried again where that helps. The user keeps what was streamed before a failure.

    The model sees the last try alone: the text of an earlier one, also of another model, stands in the context until
    the next says something.
    """
    retries = calls.retries(model, has_fallback=has_fallback)
    left = RESPONSE_CHARACTERS
    keep = append = response.text.append

    def keep_instead(text: str) -> None:
        nonlocal keep
        response.text[:] = [text]
        keep = append

    if response.text:
        keep = keep_instead
    while True:
        try:
            async with aclosing(await calls.open(model, request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, TextDelta):  # by the hundred thousand, and `match` is slow
                        text = piece[0]
                        left -= len(text)
                        if left < 0:
                            break
                        keep(text)
                        yield AgentMessageChunk(Text(text))
                    elif isinstance(piece, ThoughtDelta):
                        left -= len(piece.text)
                        if left < 0:
                            break
                        response.thought.append(piece.text)
                        yield AgentThoughtChunk(Text(piece.text))
                    else:
                        if isinstance(piece, UsageReported):
                            await calls.spending.add(piece)
                        response.add(piece)
            if keep is keep_instead and response.calls:
                response.text.clear()
            if left < 0:
                yield Notice(
                    "warning", f"The model sent more than {RESPONSE_CHARACTERS:,} characters; the rest was cut"
                )
                response.calls.clear()
                response.reason = "max_tokens"
            return
        except ModelFailed as failure:
            pause = retries.after(failure)
            if pause is None:
                response.failure = retries.given_up(failure)
                return
        response.begin_again()
        is_broken_off = bool(response.text) and keep is not keep_instead
        keep = keep_instead
        yield broken_off(pause.notice) if is_broken_off else pause.notice
        async with aclosing(retries.wait(pause)) as notices:
            async for notice in notices:
                yield notice


def _writable(given: dict[str, object]) -> dict[str, object]:
    """Return an input as a log can hold it: half of a surrogate pair is no text."""
    try:
        msgspec.json.encode(given)
        return given
    except (UnicodeEncodeError, TypeError, ValueError):
        text = json.dumps(given, ensure_ascii=False, default=str)
        cleaned: dict[str, object] = json.loads(text.encode("utf-8", "replace"))
        return cleaned
