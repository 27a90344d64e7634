"""A transport with two who may stop it: the link that reads it, and the listeners it is read for."""

from collections.abc import Callable
from typing import Final

from dragoman.transports.contract import Receiver, Transport


class AgentReadGate:
    """A transport that is read when the link wants to read and the listeners can take it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._link_pauses = False
        self._held = False
        self.start: Final[Callable[[Receiver], None]] = transport.start
        self.write: Final = transport.write
        self.close_writing: Final = transport.close_writing
        self.close: Final = transport.close

    def hold(self, held: bool) -> None:
        if held != self._held:
            self._held = held
            self._follow()

    def pause_reading(self) -> None:
        self._link_pauses = True
        self._follow()

    def resume_reading(self) -> None:
        self._link_pauses = False
        self._follow()

    def _follow(self) -> None:
        if self._held or self._link_pauses:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
