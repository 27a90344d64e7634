"""`_agentao.cn/ask_user`: a question to the user in free text, as agents asked before there were forms.

Three forms of an answer are in use, so all three are given at once. Without a user the answer is `UNAVAILABLE`: an
agent that waits for one would wait for ever.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from dragoman.errors import INVALID_PARAMS, RequestFailed

ASK_USER: Final = "_agentao.cn/ask_user"
UNAVAILABLE: Final = "(user unavailable)"
# `_meta` of the client's capabilities, sent only if the client has an `ask_user` callback.
ADVERTISED: Final[dict[str, object]] = {
    "_agentao.cn/extensions": [{"method": ASK_USER, "description": "Ask the user a question in free text"}]
}


class UserQuestion(NamedTuple):
    """What the agent wants to know, and what it proposes to answer, if anything."""

    session_id: str
    question: str
    options: tuple[str, ...] = ()


# The answer; None if there is none.
AskUserCallback = Callable[[UserQuestion], Awaitable[str | None]]


def read_question(params: object) -> UserQuestion:
    """A question as it stands in the request."""
    given = params if isinstance(params, dict) else {}
    question, session_id, options = given.get("question"), given.get("sessionId"), given.get("options")
    if not isinstance(question, str) or not isinstance(session_id, str):
        raise RequestFailed(INVALID_PARAMS, "sessionId and question must be text")
    listed = options if isinstance(options, list) else []
    return UserQuestion(session_id, question, tuple(label for label in map(_label, listed) if label))


def answered(text: str | None) -> dict[str, str]:
    """An answer in every form."""
    if text is None:
        return {"answer": UNAVAILABLE, "outcome": "cancelled", "text": UNAVAILABLE}
    return {"answer": text, "outcome": "answered", "text": text}


async def answer_question(ask: AskUserCallback | None, params: object) -> dict[str, str]:
    """Ask, and say what came of it."""
    question = read_question(params)
    return answered(None if ask is None else await ask(question))


def _label(option: object) -> str:
    if isinstance(option, dict):
        option = option.get("label") or option.get("name") or option.get("value")
    return option if isinstance(option, str) else ""
