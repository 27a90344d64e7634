"""What every transport promises. `tests/transports` holds the contract test that each of them passes.

A transport moves bytes and knows nothing of frames. It keeps no queue: bytes that cannot be sent now stay with the
caller of `write`, bytes behind `pause_reading` stay with the peer. So the caller bounds the memory in use.

It never calls back from inside `write`, `pause_reading`, `resume_reading` or `close_writing`.
"""

from typing import Protocol


class Receiver(Protocol):
    """Gets what a transport receives. Called from the event loop, in order, never concurrently; must not raise."""

    def data_received(self, data: bytes) -> None:
        """Receive the next bytes, at most `limits.READ_BYTES` on pipes. A piece may end anywhere in a frame."""

    def writable(self) -> None:
        """Write on after a short write: there is room again, or what is written now is dropped."""

    def connection_lost(self, error: Exception | None) -> None:
        """End: nothing more will be received. Called exactly once, after the bytes that arrived before it.

        None is a clean end: the peer has sent its last byte, or `close` was called. The other direction may still be
        open: writing goes on until `close`, so answers to the last requests can leave.
        An error (a `LinkClosed`) means that both directions are gone, and no other call comes after it.
        Bytes that wait behind `pause_reading` may be dropped once the transport knows that the peer is gone.
        """


class Transport(Protocol):
    """One connection. `start` comes first, `close` last; everything happens on the loop that ran at `start`."""

    def start(self, receiver: Receiver) -> None:
        """Begin to read. The first call of the receiver comes in a later iteration of the loop."""

    def write(self, data: bytes | memoryview) -> int:
        """Accept as many bytes as there is room for, without blocking, and return how many: 0 to `len(data)`.

        If that is less than all, `receiver.writable()` follows once there is room, and until then `write` returns 0.
        Never raises for a dead peer, and after `close_writing`, `close` or a loss it accepts and drops everything:
        a writer that empties its outbox must not wait for room that never comes.
        """

    def pause_reading(self) -> None:
        """Stop calling `data_received` until `resume_reading`; the peer soon finds its pipe full. Idempotent."""

    def resume_reading(self) -> None:
        """Read on. Idempotent."""

    def close_writing(self) -> None:
        """Close our direction only: the peer reads the end of file and may still write. Idempotent."""

    async def close(self) -> None:
        """End the connection, in bounded time, and leave nothing behind: no descriptor, watcher, thread or process.

        Does not flush: bytes that `write` accepted have left. `connection_lost(None)` comes first if no loss came
        before, and nothing comes after. Idempotent; a second caller waits for the first.
        """
