"""The console in a tab: the way in, and two agents whose sessions ask."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman import connect
from dragoman.gateway.console_api.routes import ConsoleSettings
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.console_api import asking, check_limits
from tests.support.gateway import Served, gateway

from .chrome import Tab

PATH = "/"


def origin(served: Served) -> str:
    return served.http.removesuffix("/acp")


async def enter(page: Tab, served: Served, screen: str = "", token: str = "") -> None:
    """Come in with a token, and go to a screen."""
    await page.go(f"{origin(served)}{PATH}#token={token or served.token}")
    await page.until("document.querySelector('#app')?.hidden === false")
    await show(page, screen)


async def show(page: Tab, screen: str) -> None:
    await page.js(f"location.hash = '#/{screen}'")


@asynccontextmanager
async def two_agents(folder: Path) -> AsyncIterator[Served]:
    """A server with the agents `main` and `second`, each of which asks for a permission with each prompt."""
    console = ConsoleSettings(check_limits=check_limits, find_decisions=_no_decisions)
    agents = asking(folder / "first"), asking(folder / "more")
    async with gateway(agents[0], folder, beside={"second": agents[1]}, console=console, logins=folder) as served:
        yield served


async def _no_decisions(session: str) -> list[dict[str, object]]:
    return []


@asynccontextmanager
async def asked(served: Served, agent: str, folder: Path, prompt: str = "go") -> AsyncIterator["asyncio.Task[Any]"]:
    """A session of an agent that asks, at a client that does not answer; what its turn comes to."""

    async def permission(request: RequestPermission) -> PermissionOption:
        await asyncio.Event().wait()
        raise AssertionError

    async with connect(transport_for(f"{served.ws}/{agent}", served.token), permission=permission) as client:
        session = await client.new_session(folder)
        turn = asyncio.create_task(session.ask(prompt))
        try:
            yield turn
        finally:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
