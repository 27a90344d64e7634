"""Replace the cursors of an agent's session list by random names. An agent's own cursor may contain a session id of
another principal, so a client gets a random name for it, which is valid on its connection only."""

import secrets
from typing import Final

from msgspec import UNSET, UnsetType

from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, RequestFailed

# A client goes through one list at a time, or a few; the oldest is forgotten first.
_KEPT: Final = 16
# It names a place in a list; ours has some eighty.
_LENGTH: Final = 4096


class Cursors:
    """The cursors of one connection; at most `_KEPT` are valid, the newest."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def given(self, place: str | None | UnsetType) -> str | UnsetType:
        """What the client is given for a cursor of the agent's."""
        if not place:
            return UNSET
        if len(place) > _LENGTH:
            raise RequestFailed(INTERNAL_ERROR, "The agent's list cannot be continued")
        name = secrets.token_urlsafe(12)
        self._places[name] = place
        if len(self._places) > _KEPT:
            del self._places[next(iter(self._places))]
        return name

    def place(self, name: str | None | UnsetType) -> str | UnsetType:
        """The agent's cursor; `RequestFailed` where there is none."""
        if not name:
            return UNSET
        place = self._places.get(name)
        if place is None:
            raise RequestFailed(INVALID_PARAMS, "There is no such cursor here; list from the beginning")
        return place
