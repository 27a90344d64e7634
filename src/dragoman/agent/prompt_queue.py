"""What the user says while a turn runs. It waits until the turn takes it in, and is answered then.

An agent takes part by calling `session.interjected()` where it can hear something new. What the turn did not take is
the next turn, unless the user has cancelled: then nobody works on it, and that is the answer.
"""

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dragoman.errors import CANCELLED, RequestFailed
from dragoman.vocabulary.requests import PromptAccepted

if TYPE_CHECKING:
    import asyncio

    from dragoman.agent.prompt import Prompt


class QueuedPrompt(NamedTuple):
    """A prompt that waits, and whoever waits for the answer."""

    prompt: "Prompt"
    answer: "asyncio.Future[PromptAccepted]"

    @classmethod
    def of(cls, prompt: "Prompt") -> "QueuedPrompt":
        """A prompt nobody has answered yet."""
        from asyncio import get_running_loop  # not before `initialize` is answered

        return cls(prompt, get_running_loop().create_future())

    def accept(self) -> None:
        """It stands in the conversation."""
        if not self.answer.done():
            self.answer.set_result(PromptAccepted(self.prompt.message_id))


class PromptQueue:
    """Those of one session, in order."""

    def __init__(self) -> None:
        self._waiting: deque[QueuedPrompt] = deque()

    async def wait(self, prompt: "Prompt") -> PromptAccepted:
        """Until the prompt is taken in."""
        interjection = QueuedPrompt.of(prompt)
        self._waiting.append(interjection)
        try:
            return await interjection.answer
        finally:
            if interjection in self._waiting:  # whoever asked has given up
                self._waiting.remove(interjection)

    def take(self) -> QueuedPrompt | None:
        """The next one."""
        return self._waiting.popleft() if self._waiting else None

    def refuse(self) -> None:
        """Nobody is going to work on them."""
        while self._waiting:
            interjection = self._waiting.popleft()
            if not interjection.answer.done():
                interjection.answer.set_exception(RequestFailed(CANCELLED, "Cancelled"))
