"""One browser for all tests of a worker; a tab, and an agent behind a gateway, for each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.agent import coding_agent
from dragoman.coder.setup import Setup
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import Served, gateway
from tests.support.needs import need
from tests.support.whole_agent import ENVIRONMENT, Fixed, scripted

from .chrome import Chrome, Tab, browser, tab
from .gallery import build, served

Steps = Sequence[dict[str, Any]]
Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    with browser(need("chromium")) as started:
        yield started


@pytest.fixture
async def page(chrome: Chrome) -> AsyncIterator[Tab]:
    async with tab(chrome) as opened:
        yield opened


@pytest.fixture(scope="session")
def gallery() -> Iterator[str]:
    """The address of the gallery of components; what is behind its `#` is the page."""
    with served(build()) as address:
        yield address


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """The coding agent with a model that plays these turns, in a folder of its own."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)  # where a new session works

    @asynccontextmanager
    async def started(*turns: Steps, **more: Any) -> AsyncIterator[Served]:
        setup = Setup(Fixed(scripted(*turns, **more)), ENVIRONMENT, home=str(tmp_path / "home"))
        store = SqliteStore(tmp_path / "sessions")
        try:
            async with gateway(coding_agent(setup, store=store), tmp_path) as served:
                yield served
        finally:
            await asyncio.to_thread(setup.close)

    return started
