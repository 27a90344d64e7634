"""Which lines are for the chat itself, and which are for the agent."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dragoman.cli.terminal.chat_commands import (
    ChatCommand,
    as_sent,
    help_lines,
    is_path,
    mentions_of,
    order_in,
    unknown_order,
)
from dragoman.cli.terminal.composer import CompletionWord
from dragoman.client.conversation import Conversation
from dragoman.vocabulary.options import Command


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
        ("/help?", ChatCommand("/help?", "")),
        ("/mode=plan now", ChatCommand("/mode=plan", "now")),
        ("/ünknown", ChatCommand("/ünknown", "")),
        ("/1abc", ChatCommand("/1abc", "")),
        ("/etc, why?", ChatCommand("/etc,", "why?")),
        ("/ is a folder", ChatCommand("/", "is a folder")),
        ("/", ChatCommand("/", "")),
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
        ("//help?", "/help?"),
        ("//ünknown, really", "/ünknown, really"),
        (" /model", " /model"),
        ("//server/share is odd", "//server/share is odd"),
        ("// a comment", "// a comment"),
        ("hello", "hello"),
    ],
)
def test_a_second_slash_hands_the_word_on(typed: str, sent: str) -> None:
    assert as_sent(typed) == sent


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("/etc", True),
        ("/etc.", True),
        ("/etc,", True),
        ("/etc?", True),
        ("/nosuch", False),
        ("/", False),
        ("/?", False),
    ],
)
def test_something_that_is_there_is_a_path(word: str, found: bool) -> None:
    assert is_path(ChatCommand(word, "")) is found
    assert Path("/etc").is_dir()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/help?", "did you mean /help?"),
        ("/exit!", "did you mean /exit?"),
        ("/models,", "did you mean /model?"),
        ("/mode=plan", "did you mean /mode?"),
        ("/HELP", "did you mean /help?"),
        ("/Review.", "did you mean /review?"),
        ("/revue-all", "did you mean /review-all?"),
        ("/ünknown", "/help shows what there is."),
        ("/1abc", "/help shows what there is."),
        ("/?", "/help shows what there is."),
    ],
)
def test_the_command_that_was_meant_is_named(typed: str, meant: str) -> None:
    assert unknown_order(announcing("review", "review-all"), ChatCommand(typed, "")) == (
        f"no such command: {typed}; {meant} (/{typed} sends it to the agent)"
    )


def test_a_slash_alone_is_no_command_and_goes_to_the_agent_behind_a_blank() -> None:
    assert unknown_order(announcing(), ChatCommand("/", "is a folder")) == (
        "no such command: /; /help shows what there is. (a space before it sends it to the agent)"
    )


def test_a_word_that_is_no_command_is_shown_harmless_and_in_part() -> None:
    shown = unknown_order(announcing(), ChatCommand("/a\x1b]0;x\x07" + "b" * 5000, ""))
    assert shown.startswith(r"no such command: /a\x1b]0;x\x07bbb")
    assert "\x1b" not in shown and len(shown) < 300


def announcing(*names: str) -> Conversation:
    """Return what the commands of a chat need of a conversation."""
    return cast(Conversation, SimpleNamespace(commands=[Command(name, "") for name in names]))


def test_words_behind_an_at_are_those_that_a_command_carries_and_that_can_be_typed() -> None:
    words = [["docs:a://guide", "Guide"], ["docs:with blank", "x"], ["docs:\x1b[2J", "x"], ["one"], None]
    commands = [
        Command("mcp", "", meta={"dragoman/mentions": words}),
        Command("odd", "", meta={"dragoman/mentions": 5}),
    ]
    conversation = cast(Conversation, SimpleNamespace(commands=commands))
    assert mentions_of(conversation) == [CompletionWord("@docs:a://guide", "Guide")]


def test_what_goes_on_in_the_help_stands_behind_the_names() -> None:
    conversation = cast(Conversation, SimpleNamespace(commands=[Command("review", "Look at the change " * 6)]))
    lines = list(help_lines(conversation, 80))
    assert max(map(len, lines)) <= 80
    assert [line[:14].strip() for line in lines].count("") > 4
    assert all(line[:15].isspace() or (line[0] in "/@!CAw" and line[14] == " ") for line in lines)
