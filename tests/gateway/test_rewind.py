"""Rewinding behind a gateway: for tokens that may prompt, and for files only with the right to write."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import connect
from dragoman.coder.agent import coding_agent
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.requests import RewindSession
from tests.support.gateway import Served, gateway
from tests.support.git_repository import repository
from tests.support.whole_agent import ENVIRONMENT, Fixed, Guarded, scripted

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served_coder(tmp_path: Path) -> AsyncIterator[Served]:
    writes = [{"call": "write_file", "input": {"path": "new", "content": "made\n"}}, {"say": "Done."}]
    setup = Guarded(Fixed(scripted(writes)), ENVIRONMENT, mode="full-access", home=str(tmp_path / "home"))
    try:
        async with gateway(coding_agent(setup, store=SqliteStore(tmp_path / "sessions")), tmp_path) as served:
            yield served
    finally:
        await asyncio.to_thread(setup.close)


@pytest.mark.requirement("RW11")
async def test_a_token_that_only_reads_cannot_rewind_and_one_that_prompts_can(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    async with served_coder(tmp_path) as served:
        url = f"http://127.0.0.1:{served.server.port}/acp"
        async with connect(url, token=served.token) as client:
            conversation = await client.new_session(str(folder))
            await conversation.prompt("write").read()
            reader = served.token_of("reader", ("read",), "default")
            async with connect(url, token=reader) as other:
                for preview in (True, False):
                    with pytest.raises(RequestFailed, match="may only read"):
                        await other.ask(RewindSession(conversation.id, preview=preview))
            assert (folder / "new").exists()
            done = await client.ask(RewindSession(conversation.id))
            assert (done.applied, (folder / "new").exists()) == (True, False)
