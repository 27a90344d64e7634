"""What every transport promises. `tests/transports` holds the contract test that each of them passes.

A transport moves bytes and knows nothing of frames. It keeps no queue: bytes that cannot be sent now stay with the
caller of `write`, bytes behind `pause_reading` stay with the peer. So the caller bounds the memory in use.

It never calls back from inside `write`, `pause_reading`, `resume_reading` or `close_writing`.
"""

from typing import Protocol


class Receiver(Protocol):
    """Who is told what happens. Called from the event loop, in order, never concurrently; must not raise."""

    def data_received(self, data: bytes) -> None:
        """The next bytes, at most `limits.READ_BYTES` of them on pipes. Pieces say nothing about frames."""

    def writable(self) -> None:
        """After a short write: there is room again, or what is written now is swallowed."""

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will be received. Exactly once, after the bytes that arrived before it.

        None is a clean end: the peer has said all it had to say, or `close` was called. The other direction may still
        be open: writing goes on until `close`, so answers to the last requests can leave.
        An error (a `LinkClosed`) means that both directions are gone, and nothing is told after it.
        Bytes that wait behind `pause_reading` may be dropped once the transport knows that the peer is gone.
        """


class Transport(Protocol):
    """One connection. `start` comes first, `close` last; everything happens on the loop that ran at `start`."""

    def start(self, receiver: Receiver) -> None:
        """Begins to read; the first call back comes in a later turn of the loop."""

    def write(self, data: bytes | memoryview) -> int:
        """Takes what it can now, without blocking, and says how much: 0 to `len(data)`.

        If that is less than all, `receiver.writable()` follows once there is room, and until then writing takes 0.
        Never raises for a dead peer, and after `close_writing`, `close` or a loss it takes and forgets everything:
        a writer that empties its outbox must not wait for room that never comes.
        """

    def pause_reading(self) -> None:
        """No `data_received` until `resume_reading`; the peer soon finds its pipe full. Idempotent."""

    def resume_reading(self) -> None:
        """Goes on reading. Idempotent."""

    def close_writing(self) -> None:
        """Half close: the peer sees the end of what we say and may still answer. Idempotent."""

    async def close(self) -> None:
        """Ends the connection, in bounded time, and leaves nothing behind: no descriptor, watcher, thread or process.

        Does not flush: bytes that `write` took have left. `connection_lost(None)` comes first if no loss came before,
        and nothing comes after. Idempotent; a second caller waits for the first.
        """
