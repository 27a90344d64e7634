"""Two links joined: what one side receives is sent to the other, in its dialect.

    editor -- client side (we are its agent) == Bridge == agent side (we are its client) -- agent

It knows the vocabulary and two links, and nothing of the versions between them. `sides` handles the links, `forwarding`
brings messages across, `read_gate` stops reading a side while the other does not keep up, `questions` renames requests,
`services` is what stands between the two and supplies what one of them lacks.

Promises
- Each direction is one queue of steps: events, notes, requests and replies leave in the order they were received.
- Every request ends exactly once on both sides, and so does every turn, whichever side fails or goes away.
- A permission never turns into an allow: dialects pass on only an option that was offered and chosen, and whatever
  goes wrong between them becomes the outcome `cancelled` or an error.
- A side that does not read is not written for: the other side is no longer read until it has caught up.
- Ids belong to one hop. A question that names a request is asked under that request's name on the other hop.
"""

import asyncio
import logging
import warnings

from dragoman import limits
from dragoman.bridge.forwarding import OpenWork
from dragoman.bridge.services import BridgeServices
from dragoman.bridge.sides import BridgeAgentSide, BridgeClientSide, Noise, SpokenWire
from dragoman.errors import LinkClosed
from dragoman.link import Trace
from dragoman.transports.contract import Transport

_log = logging.getLogger(__name__)
_ANY_VERSION = SpokenWire()


class Bridge:
    """Join the transport of an editor and the transport of an agent.

    Make it inside a running loop; `run` does the work. `trace` is called with the frames of the editor, `trace_agent`
    with those of the agent. `on_noise` is called with a sentence for each message that was skipped. `start_timeout` is
    how many seconds the agent may take to answer `initialize`. `services` supply what one side lacks; none by default.
    `editor_wire` and `agent_wire` say how each side is spoken to, where its `initialize` does not. `trace_back` is the
    former name of `trace_agent`.
    """

    def __init__(
        self,
        editor: Transport,
        agent: Transport,
        *,
        trace: Trace | None = None,
        trace_agent: Trace | None = None,
        on_noise: Noise | None = None,
        start_timeout: float = limits.START_SECONDS,
        services: BridgeServices | None = None,
        editor_wire: SpokenWire = _ANY_VERSION,
        agent_wire: SpokenWire = _ANY_VERSION,
        trace_back: Trace | None = None,
    ) -> None:
        if trace_back is not None:
            warnings.warn("trace_back= is called trace_agent= now", DeprecationWarning, stacklevel=2)
            trace_agent = trace_agent or trace_back
        self._open_work = OpenWork()
        self._services = services or BridgeServices()
        self._client_side = BridgeClientSide(
            editor, trace, on_noise, self._open_work, start_timeout, self._services, editor_wire
        )
        self._agent_side = BridgeAgentSide(agent, trace_agent, on_noise, self._open_work, self._services, agent_wire)
        self._client_side.other, self._agent_side.other = self._agent_side, self._client_side
        self._services.attach(self._client_side, self._agent_side)

    def __repr__(self) -> str:
        return f"<Bridge client={self._client_side!r} agent={self._agent_side!r} {self._open_work!r}>"

    @property
    def fault(self) -> LinkClosed | None:
        """Return why the bridge has ended by itself, where the bytes of a side left nothing else to do; else None."""
        return self._client_side.link.fault or self._agent_side.link.fault

    @property
    def agent_failure(self) -> LinkClosed | None:
        """Return how the agent has ended, where it was gone before the editor; else None."""
        return self._agent_side.failure

    async def run(self) -> None:
        """Forward messages until one side is gone; then forward its last messages, end what it left open, and close
        the other side. Waits; raises nothing but what cancels it."""
        client, agent = self._client_side, self._agent_side
        queues = [asyncio.ensure_future(side.queue.run()) for side in (client, agent)]
        try:
            # The agent first: its bytes wait for the editor's `initialize`, and never the other way round.
            agent.link.start()
            client.link.start()
            await asyncio.wait([client.lost, agent.lost], return_when=asyncio.FIRST_COMPLETED)
            _log.debug("a side is gone: %r", self)
            for side, other in ((client, agent), (agent, client)):
                if side.lost.done():
                    await side.queue.drain(other.link)
                    await other.wait_until_replied()
        finally:
            for side in (client, agent):
                await side.link.close()
            for queue in queues:
                queue.cancel()
            await asyncio.gather(*queues, return_exceptions=True)
            await self._services.close()
