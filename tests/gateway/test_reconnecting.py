"""A connection that is cut goes on where it was, and the transcript is the same as without a cut."""

from pathlib import Path
from typing import Any, Literal

import pytest

from dragoman.agent.agent import Agent
from dragoman.client.connect import connect
from dragoman.transports.contract import Receiver
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.gateway import Served, free_port, gateway

from .cutting import Cutter, cutter

pytestmark = pytest.mark.anyio
CROSSED = (("http", 2), ("ws", 1))
Scheme = Literal["http", "ws"]


def talking() -> Agent:
    """An agent whose turn has text, a tool call, a permission and a plan."""
    agent = Agent("talking")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for number in range(4):
            await session.say(f"{number} ")
        async with session.tool("work", kind="edit") as tool:
            allowed = await session.ask_permission("May I?", tool=tool)
            await session.say(f"allowed {bool(allowed)} ")
        await session.plan(["one", "two"])
        for number in range(4):
            await session.say(f"{number} ")

    return agent


class Counted:
    """A receiver that cuts the connection when it has received so many messages."""

    def __init__(self, inner: Receiver, proxy: Cutter, at: int) -> None:
        self.count = 0
        self._inner = inner
        self._proxy = proxy
        self._at = at

    def data_received(self, data: bytes) -> None:
        self.count += 1
        if self.count == self._at:
            self._proxy.cut()
        self._inner.data_received(data)

    def writable(self) -> None:
        self._inner.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._inner.connection_lost(error)


async def transcript(served: Served, scheme: Scheme, version: int, proxy: Cutter, at: int) -> tuple[list[str], int]:
    """What a client hears of a turn when the connection is cut after message `at`, and how many messages there were."""
    transport = transport_for(f"{scheme}://127.0.0.1:{proxy.port}", served.token)
    counted: list[Counted] = []
    start = transport.start

    def watched(receiver: Receiver) -> None:
        counted.append(Counted(receiver, proxy, at))
        start(counted[0])

    transport.start = watched  # type: ignore[method-assign]
    heard: list[str] = []
    async with connect(transport, protocol=version, permission=allow) as client:
        conversation = await client.new_session()
        async for event in conversation.prompt("go"):
            heard.append(kind_of(event))
    return heard, counted[0].count


async def allow(request: RequestPermission) -> PermissionOption:
    return request.options[0]


def kind_of(event: AnyEvent) -> str:
    """An event without the ids that chance has made."""
    content = getattr(event, "content", None)
    return f"{type(event).__name__} {getattr(content, 'text', '')} {getattr(event, 'status', '')}"


@pytest.mark.requirement("K18")
@pytest.mark.parametrize(
    ("scheme", "version"), [("http", 1), ("ws", 2), *(pytest.param(*one, marks=pytest.mark.slow) for one in CROSSED)]
)
async def test_a_cut_at_every_message_changes_nothing(scheme: Scheme, version: int, tmp_path: Path) -> None:
    port = free_port()
    async with gateway(talking(), tmp_path, proxy_port=port) as served, cutter(served.server.port, port) as proxy:
        whole, messages = await transcript(served, scheme, version, proxy, 0)
        assert any("allowed True" in line for line in whole)
        assert messages > 12
        for at in range(1, messages + 1):
            cuts = proxy.cuts
            heard, _ = await transcript(served, scheme, version, proxy, at)
            assert heard == whole, f"cut after message {at}"
            assert proxy.cuts == cuts + 1
