"""Sessions that a gateway has to give up, because another node may have them: their clients are told, and come back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Conversation, Session, connect
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from dragoman.transports.remote import transport_for
from tests.support.gateway import Served, gateway
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class Waiting:
    """An agent that opens sessions when it may."""

    def __init__(self, folder: Path) -> None:
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.is_opening = False
        self.agent = Agent("waiting", store=SqliteStore(folder / "sessions"))

        @self.agent.session_opened
        async def prepare(session: Session) -> None:
            self.is_opening = True
            await self.may_open.wait()
            self.is_opening = False

        @self.agent.prompt
        async def reply(session: Session, prompt: object) -> None:
            await session.say("hello")


def client(served: Served, **options: Any) -> Any:
    return connect(transport_for(f"ws://127.0.0.1:{served.server.port}/acp", served.token), **options)


async def test_a_client_of_a_lost_session_is_told_of_a_gap_and_its_next_prompt_is_answered(tmp_path: Path) -> None:
    gaps: list[object] = []

    def note(method: str, params: object) -> None:
        gaps.append((method, params))

    async with gateway(Waiting(tmp_path).agent, tmp_path) as served, client(served, on_notification=note) as one:
        session: Conversation = await one.new_session(tmp_path)
        await session.ask("who?")
        served.hub.lose_session(session.id)
        assert served.hub.sessions.get(session.id) is None
        await until(lambda: gaps == [("_gateway/missed", {"sessionId": session.id, "missed": 0})])
        assert (await session.ask("and now?")).text == "hello"


async def test_a_session_that_is_lost_while_it_is_loaded_is_not_said_to_be_loaded(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    async with gateway(waiting.agent, tmp_path) as served, client(served) as one:
        session = await one.new_session(tmp_path)
        await session.ask("who?")
        await session.close()
        waiting.may_open.clear()
        loading = asyncio.create_task(one.load_session(session.id, tmp_path))
        await until(lambda: waiting.is_opening)
        served.hub.lose_session(session.id)
        waiting.may_open.set()
        with pytest.raises(RequestFailed) as refused:
            await loading
        assert refused.value.data == {"retry": True}
        again = await one.load_session(session.id, tmp_path)
        assert (await again.ask("who?")).text == "hello"
