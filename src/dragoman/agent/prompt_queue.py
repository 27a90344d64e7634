"""Prompts that arrive while a turn runs. Each waits until the turn accepts it, and its request is answered then.

An agent accepts them by calling `session.interjected()` where it can process new input. A prompt that the turn did not
accept begins the next turn, unless the turn was cancelled or the session closed: then its request is answered with the
error "Cancelled".
"""

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dragoman.errors import CANCELLED, RequestFailed
from dragoman.vocabulary.requests import PromptAccepted

if TYPE_CHECKING:
    import asyncio

    from dragoman.agent.session import Prompt


class QueuedPrompt(NamedTuple):
    """A prompt that waits, and the future with the reply to its request."""

    prompt: "Prompt"
    answer: "asyncio.Future[PromptAccepted]"

    @classmethod
    def of(cls, prompt: "Prompt") -> "QueuedPrompt":
        """Return `prompt` with a future that is not done yet. Needs a running event loop."""
        from asyncio import get_running_loop  # not before `initialize` is answered

        return cls(prompt, get_running_loop().create_future())

    def accept(self) -> None:
        """It stands in the conversation."""
        if not self.answer.done():
            self.answer.set_result(PromptAccepted(self.prompt.message_id))


class PromptQueue:
    """The queued prompts of one session, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: deque[QueuedPrompt] = deque()

    async def wait(self, prompt: "Prompt") -> PromptAccepted:
        """Until the prompt is taken in."""
        interjection = QueuedPrompt.of(prompt)
        self._waiting.append(interjection)
        try:
            return await interjection.answer
        finally:
            if interjection in self._waiting:  # the request was cancelled
                self._waiting.remove(interjection)

    def take(self) -> QueuedPrompt | None:
        """The next one."""
        return self._waiting.popleft() if self._waiting else None

    def refuse(self) -> None:
        """Answer every waiting prompt with the error "Cancelled", and empty the queue."""
        while self._waiting:
            interjection = self._waiting.popleft()
            if not interjection.answer.done():
                interjection.answer.set_exception(RequestFailed(CANCELLED, "Cancelled"))
