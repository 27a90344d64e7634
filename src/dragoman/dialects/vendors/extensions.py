"""Vendor extension methods that are understood from every peer, also from one whose dialect was not named.

A peer that speaks plain version 1 or 2 may be a vendor's program all the same: Agentao's client sets a model with
`_agentao.cn/set_model`, and its agent asks the user with `_agentao.cn/ask_user`, with any peer. The
plain dialects and the client look a method up in a table of this module and name no vendor. Everything that is in no
table stays an extension, for the author's own handlers.

A new vendor method needs an adapter here and a row in `tests/requirements/compatibility.toml`.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.vocabulary.requests import SetOption
from dragoman.vocabulary.services import USER_UNAVAILABLE, UserQuestion

ASK_USER: Final = "_agentao.cn/ask_user"
SET_MODEL: Final = "_agentao.cn/set_model"
# The key of `_meta` under which Agentao's peers list such methods.
EXTENSIONS: Final = "_agentao.cn/extensions"


# -- requests of a client that set an option -------------------------------------------------------------------------


class ModelMemory(Protocol):
    """What an adapter may know of a session: the id of the option that is its model, and the current value."""

    model: tuple[str, str]


class OptionExtension(Protocol):
    """An extension request that sets a session option."""

    def decode(self, params: object, sessions: Mapping[str, ModelMemory]) -> SetOption | None:
        """Return the request it stands for; None: it fits no session here and stays an extension."""

    def encode_result(self, session: ModelMemory) -> bytes:
        """Encode the answer after the option was set."""


class _SetModel:
    """Agentao's `set_model`: a model by its bare name, which is one of the provider in use (row 8.4.19)."""

    def decode(self, params: object, sessions: Mapping[str, ModelMemory]) -> SetOption | None:
        given: Any = params if isinstance(params, dict) else {}
        session = sessions.get(str(given.get("sessionId")))
        if session is None or not session.model[0] or not isinstance(given.get("model"), str):
            return None
        config_id, current = session.model
        return SetOption(given["sessionId"], config_id, of_provider(given["model"].strip(), current))

    def encode_result(self, session: ModelMemory) -> bytes:
        current = session.model[1]
        return msgspec.json.encode({"model": current.partition("/")[2] or current})


def of_provider(name: str, current: str) -> str:
    """Return a bare model name with the provider of the current model, if that has one."""
    provider, slash, _ = current.partition("/")
    return f"{provider}/{name}" if slash else name


SET_MODEL_ADAPTER: Final[OptionExtension] = _SetModel()
OPTION_EXTENSIONS: Final[Mapping[str, OptionExtension]] = {SET_MODEL: SET_MODEL_ADAPTER}


# -- requests of an agent that ask the user --------------------------------------------------------------------------


class QuestionExtension(Protocol):
    """An extension request that asks the user a question in free text."""

    def decode(self, params: object) -> UserQuestion:
        """Raise `RequestFailed` for a question that is none."""

    def encode_answer(self, text: str | None) -> dict[str, str]:
        """Return the result; None: there is no answer."""

    def encode(self, question: UserQuestion) -> dict[str, object]:
        """Return the parameters of the request."""

    def decode_answer(self, result: object) -> str | None:
        """Return the user's text; `USER_UNAVAILABLE` where the client says that there is no user; None: no answer."""


class _AskUser:
    """Agentao's `ask_user`: agents asked so before the protocol had forms (row 8.4.21)."""

    def decode(self, params: object) -> UserQuestion:
        given = params if isinstance(params, dict) else {}
        question, session_id, options = given.get("question"), given.get("sessionId"), given.get("options")
        if not isinstance(question, str) or not isinstance(session_id, str):
            raise RequestFailed(INVALID_PARAMS, "sessionId and question must be text")
        listed = options if isinstance(options, list) else []
        return UserQuestion(session_id, question, tuple(label for label in map(_label, listed) if label))

    def encode_answer(self, text: str | None) -> dict[str, str]:
        # The appendix reads `answer`; the program reads `outcome` and `text`. Both are in every answer.
        if text is None:
            return {"answer": USER_UNAVAILABLE, "outcome": "cancelled", "text": USER_UNAVAILABLE}
        return {"answer": text, "outcome": "answered", "text": text}

    def encode(self, question: UserQuestion) -> dict[str, object]:
        options = {"options": list(question.options)} if question.options else {}
        return {"sessionId": question.session_id, "question": question.question, **options}

    def decode_answer(self, result: object) -> str | None:
        if isinstance(result, str):
            return result
        if not isinstance(result, dict):
            return None
        given = next((result[name] for name in ("answer", "text") if isinstance(result.get(name), str)), None)
        match result.get("outcome"):
            case "unavailable":
                return USER_UNAVAILABLE
            case "cancelled" | "declined" if given != USER_UNAVAILABLE:  # a text beside it is not the user's
                return None
        return given


def _label(option: object) -> str:
    # An option is a text in the appendix; agents send objects as well, with the text under one of three names.
    if isinstance(option, dict):
        option = option.get("label") or option.get("name") or option.get("value")
    return option if isinstance(option, str) else ""


QUESTION_EXTENSIONS: Final[Mapping[str, QuestionExtension]] = {ASK_USER: _AskUser()}


def advertised_question(meta: object) -> str | None:
    """Return the first question method that a client names in the `_meta` of its capabilities; None: it names none."""
    named = meta.get(EXTENSIONS) if isinstance(meta, dict) else None
    listed = named if isinstance(named, list) else []
    methods = [entry.get("method") if isinstance(entry, dict) else entry for entry in listed]
    return next((method for method in QUESTION_EXTENSIONS if method in methods), None)


# `_meta` of the capabilities of a client whose user can be asked: an agent must not ask where this is missing.
QUESTIONS_ADVERTISED: Final[dict[str, object]] = {
    EXTENSIONS: [{"method": ASK_USER, "description": "Ask the user a question in free text"}]
}
