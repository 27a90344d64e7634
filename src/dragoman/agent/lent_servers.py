"""Call the MCP servers that a client lends over its connection (`mcp/message`).

A call ends with the client's answer, with a cancel (which is sent to the client) or with the connection. Notifications
of a server belong to a call that is open; any other is ignored.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from dragoman.agent.session import new_id
from dragoman.errors import INTERNAL_ERROR, RequestFailed
from dragoman.vocabulary.asking import Extension, ExtensionResult
from dragoman.vocabulary.mcp_messages import (
    MCP_MESSAGE,
    TOO_MANY_CALLS,
    McpEnvelope,
    McpOutcome,
    read_envelope,
    read_outcome,
)

# Calls that are open at once; of 128 requests in flight some are left for questions to the user.
OPEN_CALLS: Final = 64

OnNotification = Callable[[str, Mapping[str, object]], None]


class LentServers:
    """The calls to the servers of one client. `ask` sends a request to the client and waits."""

    def __init__(self, ask: Callable[[Extension], Awaitable[ExtensionResult]]) -> None:
        self._ask = ask
        self._open: dict[tuple[str, str], OnNotification] = {}

    def __repr__(self) -> str:
        return f"<LentServers {len(self._open)} calls>"

    async def call(
        self,
        server_id: str,
        method: str,
        params: Mapping[str, object],
        on_notification: OnNotification = lambda method, params: None,
    ) -> McpOutcome:
        """Call a method of a server, and wait for its answer. `on_notification` must not block.

        Raises `RequestFailed` where the client has no answer of the server, `LinkClosed` when it is gone.
        """
        if len(self._open) >= OPEN_CALLS:
            raise RequestFailed(TOO_MANY_CALLS, f"More than {OPEN_CALLS} calls of MCP servers of the client are open")
        envelope = McpEnvelope(server_id, new_id("mcp"), method, params)
        key = (server_id, envelope.request_id)
        self._open[key] = on_notification
        try:
            answer = await self._ask(Extension(MCP_MESSAGE, envelope.encode()))
        finally:
            del self._open[key]
        outcome = read_outcome(answer.result)
        if outcome is None:
            raise RequestFailed(INTERNAL_ERROR, "The client answered mcp/message with what is neither result nor error")
        return outcome

    def receive(self, params: object) -> bool:
        """Hand a notification to the call that it belongs to; False: it belongs to none."""
        envelope = read_envelope(params)
        if envelope is None or (handler := self._open.get((envelope.server_id, envelope.request_id))) is None:
            return False
        handler(envelope.method, envelope.params)
        return True
