"""`python -m bench.agents`: what it makes of requests, and one agent measured whole."""

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from bench.agent_model import FILE_TEXT, PROMPT, Asked, equal_share
from bench.agent_roster import CONTENDERS
from bench.agent_session import measure
from bench.agents import LEAST, PROMISES, ROWS, main, table, verdicts
from bench.process_tree import kill_tree, tree_of


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


def test_what_an_agent_cannot_do_has_no_figure() -> None:
    runs = [{row: 1.0 for row in ROWS if row != "load"}]
    (line,) = [line for line in table({"one": runs}).splitlines() if line.startswith(ROWS["load"][0])]
    assert line.split()[-1] == "-"


def test_ours_is_held_to_the_bound_or_to_the_best_of_the_others() -> None:
    ours, other = dict.fromkeys(ROWS, 1.0), dict.fromkeys(ROWS, 0.5)
    ours["later_word"], ours["prefix"] = 1.2, 99.9
    lines = list(verdicts({"dragoman-chat": [ours], "slow": [dict.fromkeys(ROWS, 9.0)], "other": [other]}))
    assert len(lines) == len(PROMISES) + len(LEAST)
    missed = [line.removeprefix("MISSED  dragoman-chat: ") for line in lines if line.startswith("MISSED")]
    assert missed == [
        f"{ROWS['hurried'][0]}: 1.0, at most 0.5",
        f"{ROWS['later_word'][0]}: 1.2, at most 1.0",
        f"{ROWS['deltas_cpu'][0]}: 1.000, at most 0.060",
        f"{ROWS['rest_cpu'][0]}: 1.00, at most 0.50",
        f"{ROWS['initialize'][0]}: 1.0, at most 0.5",
        f"{ROWS['cancel'][0]}: 1.0, at most 0.5",
        f"{ROWS['load'][0]}: 1.0, at most 0.5",
        f"{ROWS['prefix'][0]}: 99.9, at least 100.0",
        f"{ROWS['chunks'][0]}: 1, at least 1000",
        f"{ROWS['told'][0]}: 1, at least 3",
    ]


FOREBEAR = """\
import os, time
child = os.fork()
if child == 0:
    os.fork()
    print("up", flush=True)
    time.sleep(600)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_tree_that_is_killed_has_no_process_left() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", FOREBEAR], stdout=subprocess.PIPE) as forebear:
        assert forebear.stdout is not None
        assert [forebear.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
        kill_tree(forebear.pid)
        assert forebear.stdout.read() == b"%d\n" % -signal.SIGKILL  # to its end: both have let go of it


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
    assert (figures["chunks"], figures["told"]) == (1000, 3)
