"""Questions to the user in free text, which agents asked by extension methods before the protocol had forms.

Which methods those are, and how they are read and answered, is in `dialects/vendors/extensions.py`. Without a user the
answer says so: an agent that waits for one would wait for ever.
"""

from collections.abc import Awaitable, Callable, Mapping

from dragoman.dialects.vendors.extensions import QUESTION_EXTENSIONS, QUESTIONS_ADVERTISED
from dragoman.vocabulary.asking import Extension, ExtensionResult
from dragoman.vocabulary.services import UserQuestion

__all__ = ["ADVERTISED", "AskUserCallback", "UserQuestion", "answer_question", "asks_user", "unanswered"]

# Returns the answer; None if there is none.
AskUserCallback = Callable[[UserQuestion], Awaitable[str | None]]

# What stands in `_meta` of the client's capabilities, sent only if the client has an `ask_user` callback.
ADVERTISED: Mapping[str, object] = QUESTIONS_ADVERTISED


def asks_user(request: Extension) -> bool:
    """Return whether an extension request is a question to the user."""
    return request.method in QUESTION_EXTENSIONS


async def answer_question(ask: AskUserCallback | None, request: Extension) -> ExtensionResult:
    """Ask the user and return the result; `RequestFailed` for params that are no question."""
    extension = QUESTION_EXTENSIONS[request.method]
    question = extension.decode(request.params)
    return ExtensionResult(extension.encode_answer(None if ask is None else await ask(question)))


def unanswered(request: Extension) -> ExtensionResult:
    """Return the result of a question that stays without an answer."""
    return ExtensionResult(QUESTION_EXTENSIONS[request.method].encode_answer(None))
