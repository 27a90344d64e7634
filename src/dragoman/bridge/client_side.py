"""The editor's side of a bridge: its hello is said to the agent, and what it begins is kept until it is finished."""

import asyncio
from collections.abc import Awaitable

from dragoman.bridge.failures import GONE, UNREADABLE
from dragoman.bridge.forwarded_request import ForwardedRequest
from dragoman.bridge.open_work import OpenWork
from dragoman.bridge.side import BridgeSide, Noise
from dragoman.errors import (
    INTERNAL_ERROR,
    UNSUPPORTED_VERSION,
    LinkClosed,
    PeerError,
    RequestFailed,
    VersionMismatch,
)
from dragoman.link import Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import CancelTurn, CloseSession, DeleteSession, PromptAccepted, PromptRequest


class BridgeClientSide(BridgeSide):
    """The side on which we are the agent."""

    def __init__(
        self,
        transport: Transport,
        trace: Trace | None,
        on_noise: Noise | None,
        unfinished: OpenWork,
        start_timeout: float,
    ) -> None:
        super().__init__(transport, "agent", trace, on_noise)
        self._unfinished = unfinished
        self._start_timeout = start_timeout
        self._agent = AgentHello(None)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> Awaitable[AgentHello]:
        return self._meet(hello)

    async def _meet(self, hello: ClientHello) -> AgentHello:
        """The editor's words are said to the agent, and its answer is ours."""
        self.answers(asyncio.current_task())
        try:
            async with asyncio.timeout(self._start_timeout):
                agent = await self.other.link.initialize(hello)
        except RequestFailed:
            raise
        except VersionMismatch as mismatch:
            raise RequestFailed(UNSUPPORTED_VERSION, "The agent speaks another protocol version") from mismatch
        except PeerError as mistake:
            raise RequestFailed(INTERNAL_ERROR, UNREADABLE) from mistake
        except LinkClosed as closed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from closed
        except TimeoutError as late:
            raise RequestFailed(INTERNAL_ERROR, "The agent did not answer initialize in time") from late
        self._agent = agent
        self.way.open()
        self.other.way.open()
        return agent

    # -- a crossing that began here calls these ----------------------------------------------------------------------

    async def carry(self, crossing: ForwardedRequest) -> Reply:
        """Ask the agent. To close a session that its version cannot close is to stop its work."""
        request = crossing.request
        if isinstance(request, CloseSession) and not self._agent.capabilities.close:
            await self.other.link.send_notification(CancelTurn(request.session_id))
            return Done()
        return await super().carry(crossing)

    def on_sent(self, crossing: ForwardedRequest) -> None:
        self._unfinished.add(crossing)

    def on_answer(self, crossing: ForwardedRequest) -> None:
        request = crossing.request
        if isinstance(request, PromptRequest):
            self._unfinished.expect_turn(request.session_id, crossing)

    def on_outcome(self, crossing: ForwardedRequest, outcome: Reply | RequestFailed) -> None:
        request = crossing.request
        if isinstance(request, PromptRequest) and not isinstance(outcome, PromptAccepted):
            self._unfinished.no_turn(request.session_id, crossing)
        elif isinstance(request, (CloseSession, DeleteSession)) and isinstance(outcome, Reply):
            self._unfinished.end_turns(request.session_id)

    def on_end(self, crossing: ForwardedRequest) -> None:
        self._unfinished.drop(crossing)
