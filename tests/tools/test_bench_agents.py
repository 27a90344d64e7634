"""`python -m bench.agents`: what it makes of requests, and one agent measured whole."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from bench.agent_model import FILE_TEXT, PROMPT, Asked, equal_share
from bench.agent_roster import CONTENDERS
from bench.agents import ROWS, main, measure, table
from bench.process_tree import tree_of


def body(system: str, *messages: str, **more: Any) -> dict[str, Any]:
    given = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in messages]
    return {"model": "m", "tools": [{"name": "read"}], "system": system, "messages": given, **more}


def test_a_request_that_goes_on_begins_with_all_of_the_one_before() -> None:
    assert equal_share(body("s" * 500, "a" * 500), body("s" * 500, "a" * 500, "b")) == 1


def test_a_system_prompt_that_changes_leaves_little_that_is_equal() -> None:
    assert equal_share(body("12:00 " + "s" * 900, "a"), body("12:01 " + "s" * 900, "a", "b")) < 0.1


def test_marks_of_a_cache_may_move() -> None:
    marked = body("s" * 500, "a" * 500)
    marked["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    assert equal_share(marked, body("s" * 500, "a" * 500, "b")) == 1


@pytest.mark.parametrize(
    ("messages", "is_main"),
    [
        ((PROMPT,), True),
        ((PROMPT, "called", FILE_TEXT), True),
        ((PROMPT, "said", "What may the user ask next?"), False),
    ],
)
def test_what_an_agent_asks_on_the_side_is_no_part_of_the_conversation(
    messages: tuple[str, ...], is_main: bool
) -> None:
    assert Asked(0.0, 0, body("s", *messages)).is_main is is_main


def test_the_tree_of_a_process_has_its_children() -> None:
    before = tree_of(os.getpid())
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert tree_of(os.getpid()).memory_bytes > before.memory_bytes
        child.communicate()


def test_the_table_has_the_medians_of_each_agent() -> None:
    runs = [dict.fromkeys(ROWS, figure) for figure in (1.0, 9.0, 2.0)]
    lines = table({"one": runs}).splitlines()
    assert lines[0].split() == ["one"]
    assert lines[1].split() == [*["spawn", "to", "initialize", "answered,", "ms"], "2.0"]
    assert len(lines) == len(ROWS) + 1


def test_an_agent_that_is_unknown_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--agents", "dragoman-chat,nope"])
    assert ended.value.code == 2
    assert "nope is none of dragoman-chat" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dragoman-chat", "dragoman-openai", "dragoman-anthropic"])
def test_our_agent_is_measured_with_each_provider(name: str) -> None:
    figures = asyncio.run(measure(CONTENDERS[name]))
    assert figures.keys() == ROWS.keys()
    assert [row for row, figure in figures.items() if figure <= 0] == []
    assert (figures["requests_first"], figures["requests_later"]) == (1, 1)
    assert figures["prefix"] > 99
