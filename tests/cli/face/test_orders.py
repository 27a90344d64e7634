"""Which lines are for the chat itself, and which are for the agent."""

from pathlib import Path

import pytest

from dragoman.cli.face.orders import ChatCommand, as_sent, is_path, order_in


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("/model", ChatCommand("/model", "")),
        ("/model  x y ", ChatCommand("/model", "x y")),
        ("/review\nall of\nit", ChatCommand("/review", "all of\nit")),
        ("/mcp:server.tool-1", ChatCommand("/mcp:server.tool-1", "")),
        (" /model", None),
        ("//model", None),
        ("/etc/hosts is odd", None),
        ("/usr/bin/x", None),
        ("/etc, why?", None),
        ("/ is a folder", None),
        ("/1", None),
        ("model /x", None),
        ("   ", None),
    ],
)
def test_a_first_word_with_one_slash_is_an_order(text: str, order: ChatCommand | None) -> None:
    assert order_in(text) == order


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("//model x", "/model x"),
        (" /model", " /model"),
        ("//server/share is odd", "//server/share is odd"),
        ("// a comment", "// a comment"),
        ("hello", "hello"),
    ],
)
def test_a_second_slash_hands_the_word_on(typed: str, sent: str) -> None:
    assert as_sent(typed) == sent


@pytest.mark.parametrize(("word", "found"), [("/etc", True), ("/etc.", True), ("/nosuch", False)])
def test_something_that_is_there_is_a_path(word: str, found: bool) -> None:
    assert is_path(ChatCommand(word, "")) is found
    assert Path("/etc").is_dir()
