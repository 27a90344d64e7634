"""What JetBrains AIR declares under `_meta.jetbrains.air` of its capabilities, and what is sent to it there.

AIR is an editor; its contract is a version and a list of names, in both directions. A name counts only where the client
has declared it, and another client is sent nothing of this namespace. Where the agent behind a bridge speaks to AIR
itself, all of this is its own affair: the client's declaration has reached it.

| name | what the client is sent or may send | where |
|---|---|---|
| `sessionFailure` | the failure of a turn as a record | `v1/session_failures` |
| `diffPatch` | a changed file as a git patch | `v1/lean_calls` |
| `rawInputRendering` | no copy of what is in `rawInput` | `v1/lean_calls` |
| `agentFileChangeReport` | the files that a turn has changed, where a prompt asks for them | `v1/file_reports` |
| `sessionRename` | `_session/rename`; declared by `sessionIndex` as well | `v1/agent` |
| `loadReplayEnd` | a sign that a loaded conversation is whole; the client alone declares it | `v1/agent` |
"""

from collections.abc import Mapping
from typing import Any, Final

from dragoman.vocabulary.hello import JETBRAINS, AgentHello, ClientCapabilities
from dragoman.vocabulary.word import Meta

AIR: Final = "air"
VERSION: Final = 1
SESSION_FAILURE: Final = "sessionFailure"
DIFF_PATCH: Final = "diffPatch"
RAW_INPUT_RENDERING: Final = "rawInputRendering"
FILE_CHANGE_REPORT: Final = "agentFileChangeReport"
LOAD_REPLAY_END: Final = "loadReplayEnd"
SESSION_RENAME: Final = "sessionRename"
# The adapters offer to rename to a client that declares this; the list of sessions that it stands for is not ours.
SESSION_INDEX: Final = "sessionIndex"
_ADVERTISED: Final = (SESSION_FAILURE, DIFF_PATCH, RAW_INPUT_RENDERING, FILE_CHANGE_REPORT)


def is_air(client: ClientCapabilities) -> bool:
    """Return whether the client is AIR, whatever it declares."""
    return _air_of(client) is not None


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


def advertised_to(client: ClientCapabilities, agent: AgentHello) -> dict[str, object]:
    """Return the `_meta` of an agent's hello for this client: empty unless it is AIR, and ours to speak to it."""
    if not is_air(client) or speaks_air(agent):
        return {}
    rename = [SESSION_RENAME] if takes_rename(client, agent) else []
    return with_air(None, "capabilities", [*_ADVERTISED, *rename])


def speaks_air(agent: AgentHello) -> bool:
    """Return whether the agent has something of its own to say to AIR."""
    return JETBRAINS in (agent.meta or {})


def takes_rename(client: ClientCapabilities, agent: AgentHello) -> bool:
    """Return whether this client may rename sessions of this agent by `_session/rename`."""
    return agent.capabilities.title and not declared_by(client).isdisjoint((SESSION_RENAME, SESSION_INDEX))


def with_air(meta: Meta | None, name: str, payload: object) -> dict[str, object]:
    """Return `_meta` with one payload of AIR more; what other names and other editors have in it stays."""
    known = meta or {}
    jetbrains = _object(known.get(JETBRAINS))
    air = {**_object(jetbrains.get(AIR)), "version": VERSION, name: payload}
    return {**known, JETBRAINS: {**jetbrains, AIR: air}}


def payload_of(meta: Meta | None, name: str) -> object:
    """Return a payload of AIR in `_meta`; None where there is none."""
    return _object(_object((meta or {}).get(JETBRAINS)).get(AIR)).get(name)


def _air_of(client: ClientCapabilities) -> Mapping[str, Any] | None:
    air = _object((client.meta or {}).get(JETBRAINS)).get(AIR)
    return air if isinstance(air, Mapping) else None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
