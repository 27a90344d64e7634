"""What the console asks of a gateway beside ACP, by a token, and an agent that asks back."""

from pathlib import Path
from typing import Any

import httpx2

from dragoman import Agent
from dragoman.gateway.token_types import TokenLimits
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import Served, http_client

OURS = {"X-Dragoman": "1"}


class ConsoleApi:
    """The console of one token."""

    def __init__(self, served: Served, token: str = "") -> None:
        self._base = served.http.removesuffix("/acp") + "/api/"
        self._headers = {"Authorization": f"Bearer {token or served.token}", **OURS}

    async def get(self, path: str, /, **query: str) -> httpx2.Response:
        async with http_client() as client:
            return await client.get(self._base + path, headers=self._headers, params=query)

    async def post(self, path: str, wish: object) -> httpx2.Response:
        async with http_client() as client:
            return await client.post(self._base + path, headers=self._headers, json=wish)

    async def answer(self, path: str, wish: object = None, /, **query: str) -> Any:
        """The answer to a GET, or to a POST where something is wished for, which has to be given."""
        got = await self.get(path, **query) if wish is None else await self.post(path, wish)
        assert got.status_code == 200, (path, got.status_code, got.text)
        return got.json()


def asking(folder: Path | None = None) -> Agent:
    """An agent that asks for a permission with each prompt, and says what came of it; it keeps sessions in `folder`."""
    agent = Agent("asking", store=None if folder is None else SqliteStore(folder))

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        if prompt.text == "do not ask":
            await session.say("nothing was asked")
            return
        allowed = await session.ask_permission("Delete the secret plan?")
        await session.say("yes" if allowed else "no")

    return agent


def check_limits(max_mode: str, workspaces: Any, allow_unconfined: bool, allow_mcp_programs: bool) -> TokenLimits:
    """Take whatever is said of a new token's limits."""
    return TokenLimits(max_mode, tuple(workspaces), allow_unconfined, allow_mcp_programs)
