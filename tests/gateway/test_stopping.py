"""The server is killed or told to stop in the middle of a turn; another start has everything that was seen."""

import asyncio
import json
import signal
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.serve import _seconds
from dragoman.client.connect import connect
from dragoman.gateway.token_store import TokenStore
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.events import AnyEvent, Idle, ToolCallUpdate
from tests.support.gateway import free_port
from tests.support.gateway_process import Serving, serving, words

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


def every_way(*fast: tuple[int, str]) -> pytest.MarkDecorator:
    """Both versions over both transports; some of them always, all of them in the slow lane."""
    ways = [(version, scheme) for version in (1, 2) for scheme in ("http", "ws")]
    slow = [pytest.param(*way, marks=pytest.mark.slow) for way in ways if way not in fast]
    return pytest.mark.parametrize(("version", "scheme"), [*fast, *slow])


LONG: dict[str, object] = {
    "turns": [{"steps": [{"say": "word ", "repeat": 5}, {"call": "bash", "input": {"command": "sleep 600"}}]}]
}
AGAIN: dict[str, object] = {"turns": [{"steps": [{"say": "again"}]}]}
SHORT: dict[str, object] = {"turns": [{"steps": [{"say": "word ", "repeat": 20, "delay_ms": 20}]}]}


def client_of(server: Serving, scheme: str, version: int, token: str, told: list[AnyEvent] | None = None) -> Any:
    transport = transport_for(f"{scheme}://127.0.0.1:{server.port}", token)
    return connect(transport, protocol=version, on_event=lambda _, event: None if told is None else told.append(event))


async def in_mid_turn(client: Any, folder: Path) -> tuple[str, Any]:
    """A turn that has said five words and runs a command."""
    conversation = await client.new_session(folder)
    turn = conversation.prompt("go")
    seen: list[AnyEvent] = []
    async for event in turn:
        seen.append(event)
        if isinstance(event, ToolCallUpdate) and event.status == "in_progress" and words(seen) == "word " * 5:
            return conversation.id, turn
    raise AssertionError(seen)


async def whole_story(server: Serving, scheme: str, version: int, token: str, id: str, folder: Path) -> list[AnyEvent]:
    """What a new client is told of a session, and that it still works."""
    told: list[AnyEvent] = []
    async with client_of(server, scheme, version, token, told) as client:
        conversation = await client.load_session(id, folder)
        story = list(told)
        assert words([event async for event in conversation.prompt("and now?")]) == "again"
    return story


def interrupted(story: list[AnyEvent]) -> bool:
    """Whether the command that ran is told as one that did not end by itself."""
    states = [event.status for event in story if isinstance(event, ToolCallUpdate) and isinstance(event.status, str)]
    return states[-1] in ("failed", "cancelled")


@every_way((1, "ws"), (2, "http"))
async def test_killed_in_mid_turn(version: int, scheme: str, tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    async with serving(home, port, LONG, "--mode", "full-access") as server:
        token = server.token
        client = client_of(server, scheme, version, token)
        await client.__aenter__()
        session_id, _ = await in_mid_turn(client, tmp_path)
        server.process.kill()
        await server.process.wait()
    await client.close()
    async with serving(home, port, AGAIN) as server:
        story = await whole_story(server, scheme, version, token, session_id, tmp_path)
    assert words(story) == "word " * 5
    assert interrupted(story)


@every_way((1, "http"), (2, "ws"))
async def test_told_to_stop_in_mid_turn(version: int, scheme: str, tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    async with serving(home, port, LONG, "--mode", "full-access", "--grace", "0.2") as server:
        token = server.token
        client = client_of(server, scheme, version, token)
        await client.__aenter__()
        session_id, turn = await in_mid_turn(client, tmp_path)
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            # The turn that could not end by itself is cancelled, and its client hears so.
            rest = [event async for event in turn]
            assert [event.stop_reason for event in rest if isinstance(event, Idle)] == ["cancelled"]
            assert await server.process.wait() == 0
    await client.close()
    async with serving(home, port, AGAIN) as server:
        story = await whole_story(server, scheme, version, token, session_id, tmp_path)
    assert words(story) == "word " * 5
    assert interrupted(story)


@every_way((2, "http"))
async def test_a_turn_that_can_end_ends_before_the_server_does(version: int, scheme: str, tmp_path: Path) -> None:
    async with serving(tmp_path / "home", free_port(), SHORT, "--grace", "30", "--log-level", "info") as server:
        async with client_of(server, scheme, version, server.token) as client:
            conversation = await client.new_session(tmp_path)
            seen: list[AnyEvent] = []
            told = False
            async for event in conversation.prompt("go"):
                seen.append(event)
                if words(seen) and not told:
                    told = True
                    server.process.send_signal(signal.SIGTERM)
            assert words(seen) == "word " * 20
            assert [event.stop_reason for event in seen if isinstance(event, Idle)] == ["end_turn"]
            async with asyncio.timeout(30):
                assert await server.process.wait() == 0
        lines = (await server.process.stderr.read()).decode().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        (stopped,) = [event for event in events if event["event"] == "stopped"]
        assert stopped["interrupted"] == 0


async def test_quiet_is_quiet(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    token = TokenStore(home / "gateway" / "tokens.json").make("default")
    async with serving(home, port, AGAIN, "--quiet", until_listening=False) as server:
        async with client_of(server, "http", 2, token) as client:
            conversation = await client.new_session(tmp_path)
            assert words([event async for event in conversation.prompt("go")]) == "again"
        server.process.send_signal(signal.SIGTERM)
        assert await server.process.stderr.read() == b""
        assert await server.process.wait() == 0


@pytest.mark.parametrize("wrong", ["-1", "nan", "inf", "x", "3601"])
def test_a_wait_is_bounded(wrong: str) -> None:
    assert _seconds("0.5") == 0.5
    with pytest.raises(ArgumentTypeError, match="from 0 to 3600"):
        _seconds(wrong)


async def test_a_second_ctrl_c_ends_it_at_once_and_without_a_traceback(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", free_port(), LONG, "--mode", "full-access", "--grace", "600") as server:
        client = client_of(server, "ws", 2, server.token)
        await client.__aenter__()
        await in_mid_turn(client, tmp_path)
        server.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            while b"stopping; turns may end first" not in await server.process.stderr.readline():
                pass  # lines of the log
            server.process.send_signal(signal.SIGINT)
            assert await server.process.wait() == -signal.SIGINT
            assert b"Traceback" not in await server.process.stderr.read()
    await client.close()
