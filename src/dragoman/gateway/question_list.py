"""The open questions of one server alone."""

from collections.abc import Collection, Sequence

from dragoman.gateway.shared_state import WaitingQuestion


class QuestionList:
    """The embedded `SharedQuestions`, in memory. There is no other server that could have a session of ours, so the
    first answer to a question counts."""

    def __init__(self) -> None:
        self._open: dict[str, WaitingQuestion] = {}  # the oldest first

    def __repr__(self) -> str:
        return f"<QuestionList open={len(self._open)}>"

    def open(self, question: WaitingQuestion) -> None:
        """Note that a question is put to the clients."""
        self._open[question.id] = question

    async def answer(self, question: WaitingQuestion) -> bool:
        """End a question because it was answered; return whether it was open. Does not wait."""
        return self._open.pop(question.id, None) is not None

    def cancel(self, question: WaitingQuestion) -> None:
        """Note that a question has ended without an answer; nothing happens if it has ended already."""
        self._open.pop(question.id, None)

    async def waiting(self, session_ids: Collection[str]) -> Sequence[WaitingQuestion]:
        """Return the open questions of these sessions, the oldest first. Does not wait."""
        return [question for question in self._open.values() if question.session_id in session_ids]

    async def waiting_for(self, principal: str, *, with_unclaimed: bool = False) -> Sequence[WaitingQuestion]:
        """Return all open questions, the oldest first. Does not wait."""
        return list(self._open.values())
