"""What an error answer says to people: the reason, wherever its sender put it."""

from typing import Any

import pytest

from dragoman.errors import AuthRequired, LinkClosed, RequestFailed
from dragoman.host.failure_text import DETAIL_CHARACTERS, failure_text


@pytest.mark.parametrize(
    ("message", "data", "said"),
    [
        ("Internal error", {"details": "401 fake failure"}, "Internal error: 401 fake failure"),
        ("Internal error", "no such model", "Internal error: no such model"),
        ("Internal error", {"message": "fetch failed"}, "Internal error: fetch failed"),
        ("Internal error", {"error": {"message": "quota exceeded"}}, "Internal error: quota exceeded"),
        ("Internal error", {"reason": "rate_limited"}, "Internal error: rate_limited"),
        ("Internal error", {"details": '{"error": {"code": 401, "message": "bad key"}}'}, "Internal error: bad key"),
        ("Internal error", {"details": "{not JSON"}, "Internal error: {not JSON"),
        (
            "Internal error",
            {"message": "fetch failed", "cause": {"message": "connect", "cause": "ECONNREFUSED"}},
            "Internal error: fetch failed: connect: ECONNREFUSED",
        ),
        ("Internal error", {"details": "Internal error: the disk is full"}, "Internal error: the disk is full"),
        ("Invalid params", [{"message": "sessionId is missing"}], "Invalid params: sessionId is missing"),
        ("The session is busy", {"reason": "busy"}, "The session is busy"),
        ("Not allowed: no write there", {"reason": "no write there"}, "Not allowed: no write there"),
        ("Out of luck.", None, "Out of luck."),
        ("Out of luck.", {"details": "again"}, "Out of luck: again"),
        ("Internal error", None, "Internal error (-32603)"),
        ("Internal error", {"limit": 7, "error": None}, "Internal error (-32603)"),
        ("", None, "Error (-32603)"),
        ("Internal error", {"details": "two\nlines \x1b[31m"}, "Internal error: two lines \\x1b[31m"),
        (
            "Key sk-0123456789abcdef0123 is wrong",
            {"details": "for ghp_0123456789abcdefghij0123456789abcdef"},
            "Key [redacted] is wrong: for [redacted]",
        ),
    ],
)
def test_the_reason_is_told_wherever_it_stands(message: str, data: Any, said: str) -> None:
    assert failure_text(RequestFailed(-32603, message, data)) == said


def test_other_errors_are_told_as_they_are() -> None:
    assert failure_text(LinkClosed("it is gone")) == "it is gone"
    assert failure_text(AuthRequired(-32000, "Log in", {"details": "first"})) == "Log in: first"


def test_details_are_bounded_however_long_or_deep_they_are() -> None:
    long = failure_text(RequestFailed(-32603, "Internal error", {"details": "word " * 1_000_000}))
    assert len(long) == len("Internal error: ") + DETAIL_CHARACTERS
    deep: Any = "the bottom"
    for _ in range(10_000):
        deep = {"cause": deep}
    assert failure_text(RequestFailed(-32603, "Internal error", deep)) == "Internal error (-32603)"
