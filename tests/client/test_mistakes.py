"""What a newcomer gets wrong with `connect`: each mistake is a Python error that names the fix."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman import PermissionPolicy, connect
from dragoman.errors import PeerMistake, UsageError
from tests.client.raw_agent import connected, new_session

pytestmark = pytest.mark.anyio


async def asynchronous(*args: object) -> None: ...


def synchronous(*args: object) -> str:
    return "yes"


async def no_arguments() -> None: ...


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"protocol": 3}, "protocol must be 1 or 2, not 3"),
        ({"permission": synchronous}, "permission is awaited: write `async def synchronous(request)`"),
        ({"permission": lambda request: "yes"}, "permission is awaited: write `async def callback(request)`"),
        ({"permission": no_arguments}, "permission is called with (request)"),
        ({"permission": "yes"}, "permission is a function, not 'yes'"),
        ({"elicitation": synchronous}, "elicitation is awaited"),
        ({"read_text_file": synchronous}, "read_text_file is awaited"),
        ({"write_text_file": synchronous}, "write_text_file is awaited"),
        ({"on_event": asynchronous}, "on_event is called in passing and not awaited"),
        ({"on_noise": asynchronous}, "on_noise is called in passing"),
        ({"on_notification": asynchronous}, "on_notification is called in passing"),
        ({"on_event": lambda: None}, "on_event is called with (conversation, event)"),
        ({"extensions": {"ping": asynchronous}}, "use '_ping'"),
        ({"extensions": {"_ping": synchronous}}, "extensions['_ping'] is awaited"),
        ({"trace": 3}, "trace is a function, not 3"),
        ({"trace": asynchronous}, "trace is called in passing and not awaited"),
        ({"trace": lambda frame: None}, "trace is called with (direction, frame)"),
        ({"start_timeout": "x"}, "not 'x': write `start_timeout=30`"),
        ({"start_timeout": True}, "not True: write `start_timeout=30`"),
        ({"start_timeout": -1}, "not -1: write `start_timeout=30`"),
        ({"start_timeout": float("nan")}, "not nan: write `start_timeout=30`"),
        ({"timeouts": 3}, "write `timeouts=Timeouts(startup=30)`"),
        ({"info": "me"}, "write `info=Implementation('my-client', '1.0')`"),
        ({"env": "NAME=value"}, "write `connect(..., env={'NAME': 'value'})`"),
        ({"env": {"NAME": 1}}, "write `connect(..., env={'NAME': 'value'})`"),
        ({"cwd": 3}, "write `connect(..., cwd='/path/to/project')`"),
    ],
)
def test_a_setting_that_cannot_work_shows_at_once(settings: Any, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(["agent"], **settings)
    assert told in str(caught.value)


def test_callbacks_in_every_honest_form_are_taken() -> None:
    seen: list[object] = []

    class Face:
        async def permission(self, request: object) -> None: ...

        async def __call__(self, request: object) -> None: ...

    connect(["agent"], permission=Face().permission, elicitation=Face(), on_noise=seen.append)


@pytest.mark.parametrize(("target", "told"), [([], "needs a command"), ("", "needs a command"), (42, "not int")])
async def test_a_target_that_is_none_is_refused(target: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        async with connect(target):
            pass


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.new_session("/"),
        lambda client: client.list_sessions(),
        lambda client: client.request("_x"),
    ],
)
async def test_a_client_without_async_with_is_not_connected(use: Callable[[Any], Any]) -> None:
    with pytest.raises(UsageError, match=r"use `async with connect\(\.\.\.\) as client`"):
        await use(connect(["agent"]))


async def test_a_client_is_neither_awaited_nor_entered_without_async() -> None:
    client: Any = connect(["agent"])
    with pytest.raises(UsageError, match=r"write `async with connect\(\.\.\.\) as client`"):
        await client
    with pytest.raises(UsageError, match=r"use dragoman\.connect_sync"), client:
        pass


async def test_a_turn_is_neither_awaited_nor_looped_over_without_async() -> None:
    async with connected(1) as (client, agent):
        session = await new_session(client, agent)
        turn: Any = session.prompt("hi")
        with pytest.raises(UsageError, match=r"`await turn\.read\(\)`"):
            await turn
        with pytest.raises(UsageError, match="`async for`"):
            for _ in turn:
                pass


@pytest.mark.parametrize("content", [None, [], 42, ["text"], [None]])
async def test_a_prompt_that_says_nothing_is_refused(content: Any) -> None:
    async with connected(1) as (client, agent):
        session = await new_session(client, agent)
        with pytest.raises(UsageError, match="a prompt is text"):
            session.prompt(content)
        assert not session.is_running


async def test_a_name_that_no_wire_can_carry_is_refused_and_the_connection_lives() -> None:
    async with connected(1) as (client, agent):
        with pytest.raises(UsageError, match="no Unicode"):
            await client.new_session("/folder\udcff")
        await new_session(client, agent)


async def test_a_method_outside_the_vocabulary_starts_with_an_underscore() -> None:
    async with connected(1) as (client, _):
        with pytest.raises(UsageError, match="use '_ping'"):
            await client.request("ping")
        with pytest.raises(UsageError, match="use '_ping'"):
            await client.notify("ping")


async def test_a_mode_that_is_not_offered_is_named() -> None:
    async with connected(1) as (client, agent):
        session = await new_session(client, agent)
        with pytest.raises(UsageError, match="offers no mode to set"):
            await session.set_mode("code")
        with pytest.raises(UsageError, match="offers no model to set"):
            await session.set_model("large")


async def test_a_program_that_sends_our_words_back_is_no_agent() -> None:
    with pytest.raises(PeerMistake, match="does not speak ACP"):
        async with connect(["cat"]):
            raise AssertionError("connected")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [({"allow": "edti"}, "there is no level 'edti'"), ({"unasked": "yes"}, 'unasked is "allow" or "reject"')],
)
def test_a_policy_knows_its_words(words: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        PermissionPolicy(**words)
    assert complaint in str(caught.value)
