"""Which session a message names, and the same message about another one."""

from typing import get_args

import pytest
from msgspec.structs import fields

from dragoman.vocabulary import asking, requests, services
from dragoman.vocabulary.asking import Extension, ExtensionNote, Note, Request
from dragoman.vocabulary.requests import CancelTurn, ListSessions, PromptRequest
from dragoman.vocabulary.services import Elicit, Form, RequestScope, SessionScope
from dragoman.vocabulary.session_ids import SessionMessage, session_of, with_session

FORM = Form({})


def test_every_message_with_a_session_id_is_a_session_message() -> None:
    messages = {
        one
        for module in (asking, requests, services)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Request | Note)
    }
    assert {one for one in messages if any(field.name == "session_id" for field in fields(one))} == set(
        get_args(SessionMessage)
    )


@pytest.mark.parametrize(
    ("message", "session_id"),
    [
        (PromptRequest("one", []), "one"),
        (CancelTurn("one"), "one"),
        (Elicit("?", FORM, SessionScope("one")), "one"),
        (Elicit("?", FORM, RequestScope(7)), None),
        (Extension("_x", {"sessionId": "one", "more": 1}), "one"),
        (Extension("_x", {"sessionId": 1}), None),
        (Extension("_x", ["one"]), None),
        (ExtensionNote("_x", {"sessionId": "one"}), "one"),
        (ListSessions(), None),
    ],
)
def test_a_message_names_its_session_or_none(message: Request | Note, session_id: str | None) -> None:
    assert session_of(message) == session_id
    other = with_session(message, "two")
    assert session_of(other) == (None if session_id is None else "two")
    assert session_id is not None or other is message
    assert with_session(other, "one") == message
