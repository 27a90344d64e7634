"""A question about a request, asked under the other hop's id for it."""

from types import SimpleNamespace
from typing import cast

import pytest

from dragoman.bridge.questions import rescoped, scope_at_client
from dragoman.link import Link
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.requests import NewSession, PromptRequest
from dragoman.vocabulary.services import Elicit, Form, RequestScope, SessionScope, UnknownMode

PROMPT = PromptRequest("s", [])


def link(*, at_turn_end: bool) -> Link:
    return cast(Link, SimpleNamespace(replies_to_prompt_at_turn_end=at_turn_end))


@pytest.mark.parametrize(
    ("request_", "is_answered", "at_turn_end", "scope"),
    [
        (PROMPT, False, False, RequestScope("mine")),
        (PROMPT, True, False, SessionScope("s")),
        (PROMPT, True, True, RequestScope("mine")),
        (NewSession("/", [], []), True, False, RequestScope("mine")),
    ],
)
def test_a_prompt_that_the_client_has_an_answer_to_is_named_by_its_session(
    request_: Request, is_answered: bool, at_turn_end: bool, scope: RequestScope | SessionScope
) -> None:
    assert scope_at_client(request_, "mine", link(at_turn_end=at_turn_end), is_answered=is_answered) == scope


def test_a_known_mode_keeps_its_fields() -> None:
    question = Elicit("?", Form({"type": "object"}), RequestScope(1))
    assert rescoped(question, RequestScope("mine")) == Elicit("?", Form({"type": "object"}), RequestScope("mine"))


@pytest.mark.parametrize(
    ("scope", "fields"),
    [
        (RequestScope("mine"), {"x": 1, "requestId": "mine"}),
        (SessionScope("s"), {"x": 1, "sessionId": "s"}),
    ],
)
def test_an_unknown_mode_names_the_new_scope_in_its_own_fields_too(
    scope: RequestScope | SessionScope, fields: dict[str, object]
) -> None:
    question = Elicit("?", UnknownMode("_odd", {"x": 1, "requestId": 1}), RequestScope(1))
    assert rescoped(question, scope) == Elicit("?", UnknownMode("_odd", fields), scope)
