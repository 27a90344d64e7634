"""Two links joined: what one side is heard to say is said to the other, in its dialect.

    editor -- front (we are its agent) == Bridge == back (we are its client) -- agent

It knows the vocabulary and two links, and nothing of the versions between them beyond what a link says it speaks.
Each side receives from its own link (`BridgeClientSide`, `BridgeAgentSide`) and forwards to the other through a
`ForwardingQueue`, a request as a `ForwardedRequest`.

Promises
- Each way is one file of steps: events, notes, requests and answers leave in the order they were heard.
- Every request ends exactly once on both sides, and so does every turn, whichever side fails or goes away.
- A permission never turns into an allow: dialects pass on only an option that was offered and chosen, and whatever
  goes wrong between them becomes the outcome `cancelled` or an error.
- A side that does not read is not written for: the other side is no longer read until it has caught up.
- Ids belong to one hop. A question that names a request is asked under that request's name on the other hop.
"""

import asyncio

from dragoman import limits
from dragoman.bridge.agent_side import BridgeAgentSide
from dragoman.bridge.client_side import BridgeClientSide
from dragoman.bridge.open_work import OpenWork
from dragoman.bridge.side import Noise
from dragoman.errors import LinkClosed
from dragoman.link import Trace
from dragoman.transports.contract import Transport


class Bridge:
    """An editor on `front`, an agent on `back`. Made inside a running loop; `run` does the work.

    `trace` sees the frames of the front, `trace_back` those of the back. `on_noise` hears what was skipped, and why.
    """

    def __init__(
        self,
        front: Transport,
        back: Transport,
        *,
        trace: Trace | None = None,
        trace_back: Trace | None = None,
        on_noise: Noise | None = None,
        start_timeout: float = limits.START_SECONDS,
    ) -> None:
        unfinished = OpenWork()
        self._front = BridgeClientSide(front, trace, on_noise, unfinished, start_timeout)
        self._back = BridgeAgentSide(back, trace_back, on_noise, unfinished)
        self._front.other, self._back.other = self._back, self._front

    @property
    def fault(self) -> LinkClosed | None:
        """Why the bridge has ended by itself, where the bytes of a side left nothing else to do; else None."""
        return self._front.link.fault or self._back.link.fault

    async def run(self) -> None:
        """Join them until one is gone; then pass on its last words, end what it left open, and end the other."""
        front, back = self._front, self._back
        ways = [asyncio.ensure_future(side.way.run()) for side in (front, back)]
        try:
            back.link.start()
            front.link.start()
            await asyncio.wait([front.lost, back.lost], return_when=asyncio.FIRST_COMPLETED)
            for side, other in ((front, back), (back, front)):
                if side.lost.done():
                    await side.way.emptied(other.link)
                    await other.answered()
        finally:
            for side in (front, back):
                await side.link.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
