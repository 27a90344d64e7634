"""The connections of one server alone, and how far their streams are."""

import asyncio
from collections.abc import Callable

from dragoman.gateway.shared_state import ConnectionPosition, FoundConnection

Position = Callable[[], ConnectionPosition]


class EmbeddedPositions:
    """The embedded `SharedPositions`: nothing is told to any other server, so a position is looked up when it is asked
    for."""

    def __init__(self) -> None:
        self._positions: dict[str, Position] = {}

    def __repr__(self) -> str:
        return f"<EmbeddedPositions connections={len(self._positions)}>"

    def add(self, connection_id: str, position: Position) -> None:
        """Note a new connection."""
        self._positions[connection_id] = position

    def remove(self, connection_id: str) -> None:
        """Note that a connection is over."""
        self._positions.pop(connection_id, None)

    async def find(self, connection_id: str, principal: str) -> FoundConnection | None:
        """Return a connection of this principal; None: it is over, or never was. Does not wait."""
        position = self._positions.get(connection_id)
        if position is None:
            return None
        found = position()
        return FoundConnection(found) if found.principal == principal else None

    async def save(self) -> None:
        """Do nothing: there is no other server."""

    async def save_at_intervals(self) -> None:
        """Wait until cancelled: there is nothing to save."""
        await asyncio.Event().wait()
