"""A model for tests that looks at what it is given: no provider takes a history with a hole in it."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from dragoman.coder.context import ContextAssistantMessage, ContextToolResult, Item
from dragoman.coder.models.contract import Model, ModelFailed, ModelRequest, Piece
from dragoman.coder.models.request_failures import ContextFull
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.coder.token_estimate import tokens_of
from tests.support.conversation import conversation


def check_well_formed(items: Sequence[Item]) -> None:
    """Raise `AssertionError` where a provider would answer 400."""
    waiting: list[str] = []
    for item in items:
        if isinstance(item, ContextToolResult):
            assert item.call_id in waiting, f"a result without a call: {item}"
            waiting.remove(item.call_id)
            continue
        assert not waiting, f"calls without a result: {waiting}"
        if isinstance(item, ContextAssistantMessage):
            assert item.text.strip() or item.calls, "an empty message of the assistant"
            waiting = [call.id for call in item.calls]
    assert not waiting, f"calls without a result: {waiting}"
    assert not isinstance(items[-1], ContextAssistantMessage), "the assistant has the last word already"


class StrictModel(ScriptModel):
    """Plays a script, checks each request, and keeps what it was asked. `fits`: more tokens than that overflow it."""

    def __init__(self, *turns: Sequence[Any], fits: int | None = None, **more: Any) -> None:
        super().__init__(parse({"turns": [{"steps": list(turn)} for turn in turns], **more}))
        self.fits = fits
        self.asked: list[ModelRequest] = []
        # Raised by the next requests for a summary, one each.
        self.summary_failures: list[ModelFailed] = []

    def make(self, name: str) -> Model:
        return self

    @property
    def summaries(self) -> list[ModelRequest]:
        return [request for request in self.asked if request.purpose == "summary"]

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        check_well_formed(request.items)
        self.asked.append(request._replace(items=conversation(request.items)))
        if request.purpose == "summary" and self.summary_failures:
            raise self.summary_failures.pop(0)
        if self.fits is not None and tokens_of(request.items) > self.fits:
            raise ContextFull(self.name)
        async for piece in super().respond(request):
            yield piece
