"""What JetBrains AIR declares under `_meta.jetbrains.air` of its capabilities, and what is sent to it there.

AIR is an editor; its contract is a version and a list of names, in both directions. A name counts only where the client
has declared it, and another client is sent nothing of this namespace.
"""

from collections.abc import Mapping
from typing import Any, Final

from dragoman.vocabulary.hello import JETBRAINS, ClientCapabilities
from dragoman.vocabulary.word import Meta

AIR: Final = "air"
VERSION: Final = 1
# A turn that failed is answered as one that ended, with a record of the failure for the transcript.
SESSION_FAILURE: Final = "sessionFailure"
# An update tells that the history of a loaded session is whole. The client alone declares it.
LOAD_REPLAY_END: Final = "loadReplayEnd"
_ADVERTISED: Final = (SESSION_FAILURE,)


def declared_by(client: ClientCapabilities) -> frozenset[str]:
    """Return the names that a client has declared; none where its declaration is malformed."""
    air = _air_of(client) or {}
    version: Any = air.get("version")
    names = air.get("capabilities")
    # `type`: true is an `int` in Python and no version; 1.0 is the same number as 1 in JSON.
    is_whole = type(version) is int or (isinstance(version, float) and version.is_integer())
    if not is_whole or version < VERSION or not isinstance(names, list):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str))


def advertised_to(client: ClientCapabilities) -> dict[str, object]:
    """Return the `_meta` of an agent's hello for this client: empty unless it is AIR."""
    return {} if _air_of(client) is None else with_air(None, "capabilities", list(_ADVERTISED))


def with_air(meta: Meta | None, name: str, payload: object) -> dict[str, object]:
    """Return `_meta` with one payload of AIR more; what other names and other editors have in it stays."""
    known = meta or {}
    jetbrains = _object(known.get(JETBRAINS))
    air = {**_object(jetbrains.get(AIR)), "version": VERSION, name: payload}
    return {**known, JETBRAINS: {**jetbrains, AIR: air}}


def _air_of(client: ClientCapabilities) -> Mapping[str, Any] | None:
    air = _object((client.meta or {}).get(JETBRAINS)).get(AIR)
    return air if isinstance(air, Mapping) else None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
