"""An agent behind an address, through our own gateway on a real socket: everything a client does, over HTTP and WS."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import connect, connect_sync
from dragoman.agent.agent import Agent
from dragoman.client.registry import AgentRegistry
from dragoman.client.workspace import Workspace
from dragoman.errors import LinkClosed, TimedOut, UsageError
from dragoman.store.contract import Store
from dragoman.store.sqlite import SqliteStore
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.gateway import Served, free_port, gateway

pytestmark = pytest.mark.anyio
both_transports = pytest.mark.parametrize("scheme", ["http", "ws"])
# A client at the other end of a socket, on a busy machine.
SECONDS = 40


def talking(store: Store) -> Agent:
    agent = Agent("talking", store=store)

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        if "wait" in prompt.text:
            await session.say("I wait.")
            await asyncio.get_running_loop().create_future()
        if "ask" in prompt.text:
            async with session.tool("work", kind="edit") as tool:
                await session.say(f"allowed {bool(await session.ask_permission('May I?', tool=tool))}")
        else:
            await session.say(f"You said {prompt.text}.")

    return agent


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    store = SqliteStore(folder / "sessions")
    async with asyncio.timeout(SECONDS), gateway(talking(store), folder) as running:
        yield running
    await store.close()


def address(served: Served, scheme: str) -> str:
    """Without a path, as people write it."""
    return {"http": served.http, "ws": served.ws}[scheme].removesuffix("/acp")


async def allow(request: RequestPermission) -> PermissionOption:
    return request.options[0]


@both_transports
async def test_a_prompt_a_permission_a_cancel_and_a_story_told_again(scheme: str, tmp_path: Path) -> None:
    told: list[AnyEvent] = []
    async with served(tmp_path) as far:
        url = address(far, scheme)
        async with connect(url, token=far.token, permission=allow) as client:
            session = await client.new_session(tmp_path)
            assert (await session.ask("hello")).text == "You said hello."
            assert (await session.ask("ask me")).text == "allowed True"
            turn = session.prompt("wait for me")
            async for event in turn:
                if isinstance(event, AgentMessageChunk):
                    await turn.cancel()
            assert turn.stop_reason == "cancelled"
            assert (await session.ask("and now")).text == "You said and now."
        async with connect(url, token=far.token, on_event=lambda _, event: told.append(event)) as client:
            assert [info.session_id for info in await client.list_sessions()] == [session.id]
            again = await client.load_session(session.id, tmp_path)
            story = json.dumps([str(event) for event in told])
            assert [word in story for word in ("hello", "allowed True", "I wait.", "and now")] == [True] * 4
            assert (await again.ask("ask me")).text == "allowed False"  # no user is there who could allow it


@both_transports
async def test_a_cancel_takes_an_open_question_away(scheme: str, tmp_path: Path) -> None:
    asked = asyncio.Event()
    gone = asyncio.Event()

    async def never(request: RequestPermission) -> None:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            gone.set()

    async with (
        served(tmp_path) as far,
        connect(address(far, scheme), token=far.token, permission=never) as client,
    ):
        session = await client.new_session(tmp_path)
        turn = session.prompt("ask me")
        await asked.wait()
        await turn.cancel()
        assert (await turn.read()).stop_reason == "cancelled"
        await gone.wait()


async def test_a_script_that_is_not_async(tmp_path: Path) -> None:
    async with served(tmp_path) as far:

        def script() -> str:
            with connect_sync(far.http, token=far.token) as client:
                return client.new_session(str(tmp_path)).ask("hello").text

        assert await asyncio.to_thread(script) == "You said hello."


@both_transports
async def test_a_wrong_token_is_a_sentence_that_does_not_repeat_it(scheme: str, tmp_path: Path) -> None:
    async with served(tmp_path) as far:
        for token, sentence in (
            ("wrong-token", "does not know this token"),
            (None, "wants a token, and none was given"),
        ):
            with pytest.raises(LinkClosed, match=sentence) as refused:
                async with connect(address(far, scheme), token=token):
                    pass
            assert "wrong-token" not in str(refused.value)


@pytest.mark.parametrize(
    ("target", "settings", "sentence"),
    [
        ("https://me:secret@x.example", {}, "no user or password in it"),
        ("http://", {}, "is no address of an agent"),
        ("ftp://x.example", {}, "is no address of an agent"),
        ("https://x.example", {"token": "x", "token_file": "x"}, "token or token_file, not both"),
        ("https://x.example", {"token": "one two"}, "it must have one token"),
        ("https://x.example", {"token": "one\r\nX-Evil: 1"}, "it must have one token"),
        ("https://x.example", {"token": ""}, "it must have one token"),
        ("https://x.example", {"token_file": "/nowhere/token"}, "no such file"),
        ("https://x.example", {"env": {"A": "b"}}, "env is for an agent that is started here"),
        (["agent"], {"token": "x"}, "a token is for an agent behind an address"),
        (memory_pair(1)[0], {"token": "x"}, "a token is for an agent behind an address"),
    ],
)
def test_what_does_not_go_together_shows_before_anything_is_sent(target: Any, settings: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        connect(target, **settings)


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        connect("https://x.example", token_file=file)
    file.chmod(0o600)
    connect("https://x.example", token_file=file)


@both_transports
async def test_an_agent_of_the_fleet_may_be_elsewhere(scheme: str, tmp_path: Path) -> None:
    async with served(tmp_path) as far:
        servers = {
            "file": {"url": address(far, scheme), "tokenFile": "token"},
            "variable": {"url": "$WHERE", "token": "$TOKEN"},
            "nobody": {"url": f"{scheme}://127.0.0.1:{free_port()}", "startupTimeoutMs": 200},
        }
        (tmp_path / "acp.json").write_text(json.dumps({"servers": servers}))
        (tmp_path / "token").touch(mode=0o600)
        (tmp_path / "token").write_text(far.token)
        registry = AgentRegistry.read(tmp_path, environment={"WHERE": address(far, scheme), "TOKEN": far.token})
        async with Workspace([tmp_path], environment=os.environ) as workspace:
            for name in ("file", "variable"):
                assert (registry.status(name).installed, registry.status(name).state) == (True, "configured")
                async with registry.connect(name, **workspace.callbacks()) as client:
                    session = await client.new_session(tmp_path)
                    assert (await session.ask("hello")).text == "You said hello."
                assert registry.status(name).state == "stopped"
        with pytest.raises(TimedOut):
            async with registry.connect("nobody"):
                pass
        assert registry.status("nobody").state == "failed"
