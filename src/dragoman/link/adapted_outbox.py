"""The outbox of a link whose wire has an adapter: only links to some vendors' programs load this module."""

from collections.abc import Iterable

from dragoman.dialects.vendors.wire_adapter import WireAdapter
from dragoman.errors import PeerMistake
from dragoman.link.outbox import Outbox, Trace
from dragoman.transports.contract import Transport


class AdaptedOutbox(Outbox):
    """The outbox of a link to a vendor's program: a frame leaves as the adapter of that wire writes it."""

    def __init__(self, transport: Transport, adapter: WireAdapter, *, trace: Trace | None) -> None:
        super().__init__(transport, trace=trace)
        self._adapter = adapter
        self._is_bare = False

    def put(self, payload: bytes) -> None:
        """Queue what the adapter sends in place of this payload, which may be nothing or several frames."""
        for adapted in self._adapter.send(payload):
            self.put_as_is(adapted)

    def adapt_received(self, frames: Iterable[bytes | PeerMistake]) -> list[bytes | PeerMistake]:
        """Turn frames that have arrived into frames of the protocol, and queue what has to be sent back for them."""
        adapted: list[bytes | PeerMistake] = []
        for arrived in frames:
            if isinstance(arrived, PeerMistake):
                adapted.append(arrived)
                continue
            received = self._adapter.receive(arrived)
            adapted.extend(received.deliver)
            for payload in received.send:
                self.put_as_is(payload)
        return adapted
