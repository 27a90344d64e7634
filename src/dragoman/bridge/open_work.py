"""What the editor has begun and the agent has not finished: requests by their number at the agent, turns by session.

A request is known until its answer was said, and a prompt that was accepted until its turn has ended: so long may the
agent ask about it. A session with a turn owes the editor an end.
"""

from dragoman.bridge.forwarded_request import ForwardedRequest
from dragoman.vocabulary.requests import PromptRequest


class OpenWork:
    """Written by both sides: the front knows what was asked, the back what became of it."""

    def __init__(self) -> None:
        self._requests: dict[int, ForwardedRequest] = {}
        self._prompts: dict[str, set[ForwardedRequest]] = {}  # answered, and their turn has not ended
        self._running: set[str] = set()

    # -- requests ----------------------------------------------------------------------------------------------------

    def add(self, crossing: ForwardedRequest) -> None:
        """It has a number."""
        self._requests[crossing.number] = crossing

    def find(self, number: int) -> ForwardedRequest | None:
        """The request of this number; None if it is over."""
        return self._requests.get(number)

    def drop(self, crossing: ForwardedRequest) -> None:
        """It is over, answered or cancelled; but a prompt only with its turn."""
        request = crossing.request
        if not isinstance(request, PromptRequest) or crossing not in self._prompts.get(request.session_id, ()):
            self._requests.pop(crossing.number, None)

    # -- turns -------------------------------------------------------------------------------------------------------

    def expect_turn(self, session_id: str, prompt: ForwardedRequest) -> None:
        """This prompt is answered, and will have a turn unless we hear otherwise."""
        self._prompts.setdefault(session_id, set()).add(prompt)

    def no_turn(self, session_id: str, prompt: ForwardedRequest) -> None:
        """This prompt was answered, and began no turn."""
        accepted = self._prompts.get(session_id, set())
        accepted.discard(prompt)
        if not accepted:
            self._prompts.pop(session_id, None)

    def begin_turn(self, session_id: str) -> None:
        """This session says that it works."""
        self._running.add(session_id)

    def is_running(self, session_id: str) -> bool:
        """Whether this session has said that it works."""
        return session_id in self._running

    def end_turns(self, session_id: str) -> None:
        """This session does nothing any more."""
        self._running.discard(session_id)
        for prompt in self._prompts.pop(session_id, ()):
            self._requests.pop(prompt.number, None)

    def sessions(self) -> set[str]:
        """The sessions that owe the editor an end."""
        return self._running | self._prompts.keys()
