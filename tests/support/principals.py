"""A real `dragoman serve`, its tokens, and clients that come to it over the network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from dragoman.client.client import Client
from dragoman.client.connect import connect
from dragoman.gateway.token_store import TokenStore
from dragoman.gateway.token_types import Scope, TokenLimits
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.gateway import free_port
from tests.support.gateway_process import Serving, serving

WORK: Final[tuple[Scope, ...]] = ("read", "prompt")


def calling(*calls: tuple[str, dict[str, object]]) -> dict[str, object]:
    """A script whose every turn makes these calls, one turn each, and then says so."""
    turns = [{"steps": [{"call": tool, "input": given}, {"say": "done"}]} for tool, given in calls]
    return {"turns": turns or [{"steps": [{"say": "done"}]}]}


def bash(command: str) -> tuple[str, dict[str, object]]:
    return "bash", {"command": command}


class Household:
    """A server that is going to run, its tokens, and the questions that were put to its clients."""

    def __init__(self, folder: Path, scheme: str = "ws") -> None:
        self.home = folder / "home"
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.questions: list[RequestPermission] = []

    def token(self, name: str, scopes: tuple[Scope, ...] = WORK, principal: str = "", **limits: Any) -> str:
        file = self.home / "gateway" / "tokens.json"
        return TokenStore(file).make(name, scopes, principal, limits=TokenLimits(**limits))

    @asynccontextmanager
    async def served(self, script: dict[str, object], *more: str) -> AsyncIterator[Serving]:
        async with serving(self.home, self.port, script, *more) as server:
            yield server

    @asynccontextmanager
    async def client(self, token: str, version: int = 2, **more: Any) -> AsyncIterator[Client]:
        """A client that says yes to everything it is asked."""

        async def yes(request: RequestPermission) -> PermissionOption:
            self.questions.append(request)
            return next(option for option in request.options if option.kind == "allow_once")

        async with connect(transport_for(self.url, token), permission=yes, protocol=version, **more) as client:
            yield client
