"""The script model: what a script may say, and where a bad one is bad."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.models.contract import (
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    UsageReported,
)
from dragoman.coder.models.script import Fail, Say, Script, ScriptError, ScriptModel, load, parse

pytestmark = pytest.mark.anyio


def steps(*given: Any) -> dict[str, Any]:
    return {"turns": [{"steps": list(given)}]}


# -- reading -------------------------------------------------------------------------------------------------------


def test_every_kind_of_step_is_read() -> None:
    script = steps(
        {"think": "Hm.", "delay_ms": 5},
        {"say": "Hello.", "repeat": 3, "delay_ms": 20},
        {"call": "read_file", "input": {"path": "a"}},
        {"call": "list_files"},
        {"usage": {"input": 3, "output": 4}},
        {"usage": {}},
        {"fail": "network", "times": 2},
        {"fail": "auth"},
        {"stop": "refusal"},
    )
    assert parse(script).turns == (
        (
            Say("Hm.", True, 1, 0.005),
            Say("Hello.", False, 3, 0.02),
            ToolCallRequested("read_file", {"path": "a"}),
            ToolCallRequested("list_files", {}),
            UsageReported(3, 4),
            UsageReported(0, 0),
            Fail("network", 2),
            Fail("auth", None),
            ModelFinished("refusal"),
        ),
    )


def test_the_window_and_the_scripts_of_sub_agents_are_read() -> None:
    script = {**steps(), "window": 1000, "agents": {"helper": steps({"say": "x"})}}
    helper = Script(((Say("x", False, 1, 0.0),),), None, {})
    assert parse(script) == Script(((),), 1000, {"helper": helper})


@pytest.mark.parametrize("end", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"])
def test_every_end_of_a_turn_can_be_scripted(end: str) -> None:
    assert parse(steps({"stop": end})).turns == ((ModelFinished(end),),)


BAD = {
    "$: must be an object": [],
    "$.turns: must be a list": {},
    "$.turns: a script needs at least one turn": {"turns": []},
    "$.turn: unknown; known here: agents, turns, window": {"turn": []},
    "$.turns[1]: must be an object": {"turns": [{"steps": []}, 7]},
    "$.turns[0].steps: must be a list": {"turns": [{}]},
    "$.turns[0].stepz: unknown; known here: steps": {"turns": [{"stepz": []}]},
    "$.window: must be a whole number, 1 or more": {**steps(), "window": 0},
    "$.agents: must be an object": {**steps(), "agents": []},
    "$.agents.x.turns: must be a list": {**steps(), "agents": {"x": {}}},
    "$.turns[0].steps[0]: a step must be an object": steps("say"),
    "$.turns[0].steps[0]: a step is one of say, think, call, stop, fail, usage": steps({"shout": "x"}),
    "$.turns[0].steps[1]: a step is one of say, think, call, stop, fail, usage": steps(
        {"say": "x"}, {"say": "x", "think": "y"}
    ),
    "$.turns[0].steps[0].say: must be text": steps({"say": 1}),
    "$.turns[0].steps[0].repeat: must be a whole number, 0 or more": steps({"say": "x", "repeat": -1}),
    "$.turns[0].steps[0].delay_ms: must be a whole number, 0 or more": steps({"think": "x", "delay_ms": 1.5}),
    "$.turns[0].steps[0].delay: unknown; known here: delay_ms, repeat, say": steps({"say": "x", "delay": 1}),
    "$.turns[0].steps[0].call: must be text": steps({"call": None}),
    "$.turns[0].steps[0].input: must be an object": steps({"call": "x", "input": []}),
    "$.turns[0].steps[0].stop: must be one of end_turn, max_tokens, max_turn_requests, refusal, cancelled, error": (
        steps({"stop": "boredom"})
    ),
    "$.turns[0].steps[0].fail: must be one of auth, rate_limit, network, server, garbage": steps({"fail": "x"}),
    "$.turns[0].steps[0].times: must be a whole number, 1 or more": steps({"fail": "auth", "times": True}),
    "$.turns[0].steps[0].usage: must be an object": steps({"usage": 7}),
    "$.turns[0].steps[0].usage.input: must be a whole number, 0 or more": steps({"usage": {"input": "3"}}),
    "$.turns[0].steps[0].usage.price: unknown; known here: cost, input, output": steps({"usage": {"price": 1}}),
    "$.turns[0].steps[0].usage.cost: must be a number, 0 or more": steps({"usage": {"cost": -1}}),
    "$.turns[0].steps[0].retry_after: must be a number, 0 or more": steps({"fail": "server", "retry_after": "1"}),
}


@pytest.mark.parametrize(("complaint", "script"), BAD.items(), ids=BAD)
def test_a_bad_script_is_refused_with_the_place(complaint: str, script: Any) -> None:
    with pytest.raises(ScriptError) as refused:
        parse(script)
    assert str(refused.value) == complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    {
        b"": "the script is not JSON: Input data was truncated",
        b'{"turns": [\n  {"steps": x}]}': (
            "the script is not JSON: JSON is malformed: invalid character (line 2, column 13)"
        ),
        b"[]": "$: must be an object",
    }.items(),
)
def test_a_file_that_is_no_script_is_refused_with_the_place(text: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_bytes(text)
    with pytest.raises(ScriptError) as refused:
        load(str(tmp_path / "script.json"))
    assert str(refused.value) == complaint


@pytest.mark.parametrize(
    ("path", "complaint"),
    {"nowhere.json": "No such file or directory", ".": "Is a directory", "a\0b": "embedded null byte"}.items(),
)
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(path: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ScriptError) as refused:
        load(str(tmp_path / path))
    assert str(refused.value) == f"cannot read the script: {complaint}"


@pytest.mark.parametrize("text", [b"\xff{}", b"[" * 100_000, b'{"turns": "\\ud800"}'])
def test_strange_bytes_are_refused_and_nothing_worse(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_bytes(text)
    with pytest.raises(ScriptError):
        load(str(tmp_path / "script.json"))


# -- playing -------------------------------------------------------------------------------------------------------


async def response(model: ScriptModel) -> list[Piece | str]:
    """The pieces of one model call; a failure is its kind at the end."""
    pieces: list[Piece | str] = []
    try:
        async for piece in model.respond(ModelRequest([])):
            pieces.append(piece)
    except ModelFailed as failure:
        pieces.append(failure.kind)
    return pieces


def model_of(*turns: list[Any]) -> ScriptModel:
    model = ScriptModel(parse({"turns": [{"steps": turn} for turn in turns]}))
    model.begin_turn()
    return model


async def test_each_prompt_plays_the_next_turn_and_the_last_one_again() -> None:
    model = model_of([{"say": "one"}], [{"think": "two"}])
    heard = [await response(model)]
    for _ in range(2):
        model.begin_turn()
        heard.append(await response(model))
    assert heard == [[TextDelta("one")], [ThoughtDelta("two")], [ThoughtDelta("two")]]


async def test_repeat_says_it_that_many_times() -> None:
    assert await response(model_of([{"say": "x", "repeat": 3}, {"think": "y", "repeat": 0}])) == [TextDelta("x")] * 3


async def test_neighbouring_calls_are_one_response_and_what_follows_is_the_next() -> None:
    model = model_of([{"say": "a"}, {"call": "one"}, {"call": "two"}, {"say": "b"}, {"call": "three"}])
    assert [await response(model) for _ in range(4)] == [
        [TextDelta("a"), ToolCallRequested("one", {}), ToolCallRequested("two", {})],
        [TextDelta("b"), ToolCallRequested("three", {})],
        [],
        [],
    ]


async def test_nothing_is_said_after_a_stop() -> None:
    assert await response(model_of([{"stop": "max_tokens"}, {"say": "never"}])) == [ModelFinished("max_tokens")]


async def test_a_call_fails_as_often_as_the_script_says_then_goes_on_where_it_was() -> None:
    model = model_of([{"say": "a"}, {"fail": "server", "times": 2}, {"say": "b"}, {"fail": "garbage", "times": 1}])
    assert [await response(model) for _ in range(4)] == [
        [TextDelta("a"), "server"],
        ["server"],
        [TextDelta("b"), "garbage"],
        [],
    ]


async def test_without_times_every_attempt_fails() -> None:
    model = model_of([{"fail": "network"}])
    assert [await response(model) for _ in range(5)] == [["network"]] * 5


async def test_two_sessions_play_the_same_script_apart() -> None:
    script = parse({"turns": [{"steps": [{"say": "one"}]}, {"steps": [{"say": "two"}]}]})
    first, second = ScriptModel(script), ScriptModel(script)
    for model in (first, first, second):
        model.begin_turn()
    assert [await response(model) for model in (first, second)] == [[TextDelta("two")], [TextDelta("one")]]
